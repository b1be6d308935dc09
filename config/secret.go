package config

// Secret is text that prints as stars: a password does not reach a log by way of
// the configuration that holds it.
type Secret string

// String hides the text.
func (Secret) String() string { return "***" }

// GoString hides the text from %#v.
func (Secret) GoString() string { return "***" }
