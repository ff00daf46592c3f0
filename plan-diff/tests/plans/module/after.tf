module "child" {
  source   = "./child"
  for_each = toset(["S3CRET-in-an-address", "blue"])
  password = "S3CRET-in-a-call"
  key      = each.key
}

variable "address" {
  type      = string
  sensitive = true
  default   = "S3CRET-in-an-address"
}

output "copied" {
  value = module.child["blue"].copy
}
