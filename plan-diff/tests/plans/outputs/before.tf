resource "terraform_data" "kept" {
  input = "kept"
}
