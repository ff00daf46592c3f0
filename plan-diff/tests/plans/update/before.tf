variable "secret" {
  type      = string
  sensitive = true
  default   = "S3CRET-of-the-first-day"
}

resource "terraform_data" "nested" {
  input = {
    becomes_list   = { a = 1 }
    becomes_public = sensitive("short")
    becomes_secret = "short"
    hidden         = { token = var.secret, stays = sensitive("S3CRET-that-stays") }
    list           = ["a", "b", "c"]
    removed        = "gone"
    same           = "same"
  }
}

resource "terraform_data" "whole" {
  input = var.secret
}

resource "terraform_data" "untouched" {
  input = var.secret
}

output "kept" {
  value = "kept"
}

output "changed" {
  value = "old"
}

output "removed" {
  value = "old"
}
