// Package base holds the vocabulary that every other package shares: a distinct
// type for each number, the identities of clusters, streams and logs, the name
// grammar, the error classes and the clock.
//
// It imports the standard library only, does no I/O and holds no state, so that
// any package may depend on it. To extend it, add a type here when two packages
// that may not import each other must agree on what a number means.
package base
