variable "secret" {
  type      = string
  sensitive = true
  default   = "S3CRET-in-a-variable\"<&>\nsecond line of it"
}

resource "terraform_data" "known" {
  input = {
    empty_list = []
    empty_map  = {}
    nothing    = null
    number     = 12345678901234567890
    text       = "a \"quoted\" ünïcode text"
    truth      = true
    "odd.key"  = [1, [2, { three = 3.5 }]]
  }
}

resource "terraform_data" "unknown" {
  input = terraform_data.known.id
}

resource "terraform_data" "unknown_nested" {
  input = {
    known   = "k"
    unknown = [terraform_data.known.id, "known"]
    deep    = { all = { of = terraform_data.known.id } }
  }
}

resource "terraform_data" "sensitive" {
  input = var.secret
}

resource "terraform_data" "sensitive_nested" {
  input = {
    list   = ["public", var.secret]
    map    = { hidden = var.secret, public = "public" }
    number = sensitive(987654321)
    text   = "prefix ${var.secret}"
    whole  = sensitive({ a = ["S3CRET-in-a-whole"] })
    "null" = sensitive(null)
  }
}

resource "terraform_data" "sensitive_unknown" {
  input = sensitive(terraform_data.known.id)
}

resource "terraform_data" "echo" {
  input = {
    base64 = base64encode("user:${nonsensitive(var.secret)}")
    hex    = nonsensitive(sha256(var.secret))
    json   = jsonencode({ password = nonsensitive(var.secret) })
    key    = { (nonsensitive(var.secret)) = "x" }
    number = 987654321
    plain  = "before ${nonsensitive(var.secret)} after"
    public = "shown"
  }
}

output "public" {
  value = { list = ["shown", 1] }
}

output "secret" {
  value     = { hidden = "S3CRET-in-an-output" }
  sensitive = true
}

output "echo" {
  value = ["shown", "a copy of S3CRET-in-an-output"]
}

output "unknown" {
  value = { id = terraform_data.known.id, known = "k" }
}
