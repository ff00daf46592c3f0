# A list of targets. What they do stands in scripts/ and in the crates.
.DEFAULT_GOAL := help
.PHONY: help demo demo-check test faults lint fmt check bench

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Install what is missing, build, and show a run from `tofu apply` to its state
	@scripts/bootstrap demo
	@scripts/demo

demo-check: ## The same unattended: exits 0 or 1 and leaves nothing running
	@scripts/bootstrap demo
	@scripts/demo --check

test: ## Install what is missing and run every test
	@scripts/bootstrap test
	@scripts/test

faults: ## Break things in real applies: make faults N=100 (SEED=7 to repeat, ONLY=3 for one)
	@scripts/bootstrap test
	@scripts/faults "$(N)" "$(SEED)" "$(ONLY)"

lint: ## Clippy, with warnings as errors
	@cargo clippy --workspace --all-targets -- -D warnings

fmt: ## Format the code
	@cargo fmt --all

check: lint ## Everything .ci/run checks, without the tests
	@cargo fmt --all --check
	@scripts/deny

bench: ## Measure: make bench NAME=run (without NAME: list what there is)
	@scripts/bootstrap demo
	@scripts/bench $(NAME)
