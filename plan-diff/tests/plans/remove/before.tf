variable "secret" {
  type      = string
  sensitive = true
  default   = "S3CRET-of-what-is-removed"
}

resource "terraform_data" "deleted" {
  input = { hidden = var.secret, list = [var.secret, "public"] }
}

resource "terraform_data" "forgotten" {
  input = { hidden = var.secret, public = "public" }
}

resource "terraform_data" "shrinking" {
  count = 2
  input = count.index
}

output "removed_secret" {
  value     = var.secret
  sensitive = true
}
