// Package cli is the admin commands of the lakestream binary: what they are
// called, what they print, how they end.
//
// A command opens the engine to look only, beside whatever processes use the same
// cluster, and leaves it as it was. Results go to standard output, as text for
// people or with --json as a document whose fields are added and never renamed;
// everything else goes to standard error. Flags may stand before and after
// arguments, and one that is unknown or has no effect is an error. How a command
// ends is an exit code, see ExitCode.
//
// To add a command, write a function that returns its spec's command, name it in
// Commands, and tell its story in a test that runs it over a real directory.
package cli
