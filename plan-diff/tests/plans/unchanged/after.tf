resource "terraform_data" "kept" {
  input = sensitive("S3CRET-that-is-kept")
}

output "kept" {
  value = "kept"
}
