package base

// Secret is text that shows as stars wherever it is printed, logged or encoded: a
// password does not leave the process by way of the options that hold it. Convert
// it to a string to use it.
type Secret string

// hidden stands for every secret, also an empty one.
const hidden = "***"

// String hides the text.
func (Secret) String() string { return hidden }

// GoString hides the text from %#v.
func (Secret) GoString() string { return hidden }

// MarshalText hides the text from encoders.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }
