variable "password" {
  type      = string
  sensitive = true
}

variable "key" {
  type = string
}

variable "with_default" {
  type      = string
  sensitive = true
  default   = "S3CRET-in-a-default"
}

resource "terraform_data" "inner" {
  input = { key = var.key, copy = "S3CRET-in-a-call", default = "S3CRET-in-a-default" }
}

output "copy" {
  value = nonsensitive(var.password)
}
