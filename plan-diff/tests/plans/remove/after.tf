removed {
  from = terraform_data.forgotten
  lifecycle {
    destroy = false
  }
}

resource "terraform_data" "shrinking" {
  count = 1
  input = count.index
}
