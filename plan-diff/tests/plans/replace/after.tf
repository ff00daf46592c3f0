resource "terraform_data" "destroy_first" {
  triggers_replace = { part = ["a", "changed"], other = "x" }
  input            = sensitive("S3CRET-of-a-replaced-object")
}

resource "terraform_data" "create_first" {
  triggers_replace = sensitive("S3CRET-trigger-two")
  lifecycle {
    create_before_destroy = true
  }
}

resource "terraform_data" "forget" {
  triggers_replace = "two"
  input            = "kept"
  lifecycle {
    destroy = false
  }
}
