variable "secret" {
  type      = string
  sensitive = true
  default   = "S3CRET-of-the-second-day"
}

resource "terraform_data" "nested" {
  input = {
    added          = "new"
    becomes_list   = [1]
    becomes_public = "short"
    becomes_secret = sensitive("short")
    hidden         = { token = var.secret, stays = sensitive("S3CRET-that-stays") }
    list           = ["a", "x", "c", "d"]
    same           = "same"
  }
}

resource "terraform_data" "whole" {
  input = var.secret
}

# What the provider copied carries no mark.
resource "terraform_data" "untouched" {
  input = sensitive("S3CRET-of-the-first-day")
}

output "kept" {
  value = "kept"
}

output "changed" {
  value = "new"
}

output "added" {
  value = "new"
}
