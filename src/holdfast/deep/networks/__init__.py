"""Networks that value options, and the policies that turn their values into held actions."""
