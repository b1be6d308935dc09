package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/lakestream-go/lakestream/engine"
)

// Exit codes.
const (
	exitFailed      = 1
	exitUnavailable = 4
)

// maxStreams bounds the streams that a summary lists.
const maxStreams = 10

// closings are the engines of this process that closed, each with its last status.
// It is safe for concurrent use.
type closings struct {
	// args is the command line.
	args []string

	mu sync.Mutex
	// list is guarded by mu.
	list []closing
}

type closing struct {
	args    []string
	status  engine.Status
	drained error
}

func (c *closings) add(status engine.Status, drained error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, closing{args: c.args, status: status, drained: drained})
}

// exitCode turns Benthos's exit code into ours: a pipeline that ended well may
// have left tables behind, or failed to make everything durable.
func (c *closings) exitCode(code int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if code != 0 {
		return code
	}
	for _, one := range c.list {
		switch {
		case errors.Is(one.drained, engine.ErrTablesBehind):
			code = exitUnavailable
		case one.drained != nil && code == 0:
			code = exitFailed
		}
	}
	return code
}

// writeSummary tells what this process wrote, where it is and how to look at it.
func (c *closings) writeSummary(out io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.list {
		if one.status.Written.Records == 0 {
			continue
		}
		_ = one.write(out) // nobody is left to tell
	}
}

func (c *closing) write(out io.Writer) error {
	st := &c.status
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "  %s\t%s\n", name, fmt.Sprintf(format, args...)) // Flush returns the error
	}
	_, _ = fmt.Fprintf(w, "\nwrote %s in %s (%s)\n", count(st.Written.Records, "record"), count(st.Written.Objects, "object"), count(st.Written.Bytes, "byte"))
	query, streams := "", 0
	for i := range st.Streams {
		s := &st.Streams[i]
		if !s.Written {
			continue
		}
		if streams++; streams > maxStreams {
			continue
		}
		row("stream", "%s, %s, %s", s.Name, count(int64(s.Partitions), "partition"), count(s.Records, "record"))
		if t := s.Table; t != nil {
			row("table", "%s, %s", t.Name, describeTable(t))
			if query == "" && t.Rows > 0 {
				query = t.Name
			}
		}
	}
	if streams > maxStreams {
		row("", "and %s more", count(int64(streams-maxStreams), "stream"))
	}
	row("data", "%s", st.Storage)
	row("tables", "%s, catalog %s", st.Warehouse, st.Catalog)
	if query != "" && !strings.HasPrefix(st.Storage, "mem:") {
		row("query", "%s table head %s%s", c.program(), query, c.whichEngine())
	}
	if c.drained != nil {
		row("behind", "%v", c.drained)
	}
	return w.Flush()
}

// program returns how this program is called: as go runs it, or by its name.
func (c *closing) program() string {
	if strings.Contains(c.args[0], "go-build") {
		return "go run ."
	}
	return "lakestream"
}

// whichEngine returns the flag by which a command finds the engine that closed:
// none for the default directory, else the pipeline's file.
func (c *closing) whichEngine() string {
	if c.inDefaultDir() {
		return ""
	}
	for _, arg := range c.args[1:] {
		if strings.HasSuffix(arg, ".yaml") || strings.HasSuffix(arg, ".yml") {
			return " -c " + arg
		}
	}
	return ""
}

// inDefaultDir reports whether the engine that closed had everything in the default
// directory, where a command looks for it.
func (c *closing) inDefaultDir() bool {
	st := &c.status
	return filepath.Clean(st.Catalog) == filepath.Join(engine.DefaultDataDir, "catalog.db") &&
		strings.HasPrefix(st.Coordination, "embedded ") &&
		strings.HasSuffix(st.Storage, "/"+filepath.ToSlash(filepath.Join(engine.DefaultDataDir, "objects")))
}

// describeTable says what a table holds, in one line.
func describeTable(t *engine.TableStatus) string {
	if t.Snapshot == 0 {
		return "no snapshot yet"
	}
	text := count(t.Rows, "row") + " in snapshot " + strconv.FormatInt(t.Snapshot, 10)
	if t.DeadLetters > 0 {
		text += ", " + count(t.DeadLetters, "dead letter")
	}
	if t.Behind > 0 {
		text += ", " + count(t.Behind, "record") + " behind"
	}
	return text
}

// count says how many of something there are.
func count(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return strconv.FormatInt(n, 10) + " " + thing
}
