//! Configurations that keep OpenTofu busy. Only arithmetic does that in a plan: what is not pure, such
//! as `bcrypt`, is not computed before the apply.

/// Plans for some seconds: long enough to be looked at, short enough to be done again.
pub const SLOW_PLAN: &str = r#"
output "slow" {
  value = sum([for a in range(300) : sum([for b in range(300) : (a * b) % 7])])
}
"#;

/// Plans for hours, and listens to nobody meanwhile.
pub const ENDLESS_PLAN: &str = r#"
output "endless" {
  value = sum([for a in range(1000) : sum([for b in range(1000) : sum([for c in range(1000) : (a * b * c) % 7])])])
}
"#;
