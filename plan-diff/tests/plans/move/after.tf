moved {
  from = terraform_data.old_name
  to   = terraform_data.new_name
}

moved {
  from = terraform_data.changed_too
  to   = terraform_data.changed_and_moved
}

moved {
  from = terraform_data.each["c\"d"]
  to   = terraform_data.each["e[0].f"]
}

resource "terraform_data" "new_name" {
  input = "stays"
}

resource "terraform_data" "changed_and_moved" {
  input = "new"
}

resource "terraform_data" "each" {
  for_each = { "e[0].f" = "c\"d", "a.b" = "a.b" }
  input    = each.value
}
