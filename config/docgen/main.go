// Command docgen writes the reference of the components and of the engine, as
// Markdown, from their specs.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run writes every page into the directory that the arguments name.
func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: docgen DIRECTORY")
	}
	pages, err := render()
	if err != nil {
		return fmt.Errorf("rendering the reference: %w", err)
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(args[0], name), text, 0o644); err != nil { //nolint:gosec // documents are for everyone
			return err
		}
	}
	return nil
}
