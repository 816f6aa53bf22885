"""What code means: bit-vector terms for every modelled form, with definedness."""
