resource "terraform_data" "kept" {
  input = "kept"
}

output "added" {
  value = terraform_data.kept.output
}
