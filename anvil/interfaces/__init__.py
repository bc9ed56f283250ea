"""What users and programs call: parse arguments, call a service, render the result."""
