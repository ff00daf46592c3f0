import {
  to = terraform_data.only_imported
  id = "IMPORT-id-one"
}

import {
  to = terraform_data.changed_too
  id = "IMPORT-id-two"
}

resource "terraform_data" "only_imported" {
}

resource "terraform_data" "changed_too" {
  input = "new"
}
