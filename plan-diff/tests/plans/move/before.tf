resource "terraform_data" "old_name" {
  input = "stays"
}

resource "terraform_data" "changed_too" {
  input = "old"
}

resource "terraform_data" "each" {
  for_each = toset(["c\"d", "a.b"])
  input    = each.key
}
