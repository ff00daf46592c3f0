resource "terraform_data" "fine" {
  input = "fine"
}

resource "terraform_data" "refused" {
  input = "refused"
  lifecycle {
    precondition {
      condition     = terraform_data.fine.input == "other"
      error_message = "S3CRET-in-a-message"
    }
  }
}
