// Command lakestream runs Benthos pipelines whose streams are Iceberg tables, and
// shows and checks what they wrote.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"   // file, http, stdin and others
	_ "github.com/redpanda-data/benthos/v4/public/components/pure" // mapping, broker, generate and others
	"github.com/redpanda-data/benthos/v4/public/service"
	ucli "github.com/urfave/cli/v2"

	"github.com/lakestream-go/lakestream/config"
	"github.com/lakestream-go/lakestream/engine"
	"github.com/lakestream-go/lakestream/internal/cli"
	"github.com/lakestream-go/lakestream/plugin"
	_ "github.com/lakestream-go/lakestream/plugin/kafka" // a source with offsets
)

const (
	documentationURL = "https://github.com/lakestream-go/lakestream/tree/main/docs"
	// httpAddress is where Benthos's own API listens unless told otherwise: on
	// every interface it would show a pipeline to the network.
	httpAddress = "127.0.0.1:4195"
)

// version and date are set by the linker in releases.
var version, date string

func main() { os.Exit(run(context.Background(), os.Args)) }

// run runs the command line and returns the exit code of the process.
func run(ctx context.Context, args []string) int {
	limitMemory()
	closed := closings{args: args}
	ctx, refused := endWhenRefused(ctx, args)
	code, err := runBenthos(ctx, args, &closed)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	closed.writeSummary(os.Stderr)
	if err := refused(); err != nil {
		fmt.Fprintf(os.Stderr, "lakestream: the pipeline cannot run: %v\n", err)
		return cli.ExitCode(err)
	}
	return closed.exitCode(code)
}

// endWhenRefused returns a context that ends when a component of a single pipeline
// is refused for good, and what tells why. A pipeline that is watched for changes
// of its file goes on: the next change may heal it.
func endWhenRefused(ctx context.Context, args []string) (context.Context, func() error) {
	watched := slices.Contains(args, "-w") || slices.Contains(args, "--watcher") || slices.Contains(args, "streams")
	if watched {
		return ctx, func() error { return nil }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	plugin.OnRefused(cancel)
	return ctx, func() error {
		if ctx.Err() == nil {
			return nil
		}
		return context.Cause(ctx)
	}
}

// runBenthos runs Benthos's command line with our components, and records which
// engines closed.
func runBenthos(ctx context.Context, args []string, closed *closings) (code int, err error) {
	engine.OnClose(closed.add)
	sayWhatWeAre()
	release, built := buildInfo()
	options := []service.CLIOptFunc{
		service.CLIOptSetArgs(args...),
		service.CLIOptSetVersion(release, built),
		service.CLIOptSetBinaryName("lakestream"),
		service.CLIOptSetProductName("Lakestream"),
		service.CLIOptSetDocumentationURL(documentationURL),
		service.CLIOptSetDefaultConfigPaths("/lakestream.yaml", "/etc/lakestream/config.yaml", "/etc/lakestream.yaml"),
		service.CLIOptSetMainSchemaFrom(mainSchema),
		service.CLIOptOnConfigParse(config.SetTopLevel),
	}
	for _, command := range cli.Commands(config.LoadPipeline) { //nolint:contextcheck // a command runs in a context of its own, that signals end
		options = append(options, service.CLIOptAddCommand(command))
	}
	return service.RunCLIToCode(ctx, options...)
}

// headline is what the help of the command line begins with.
const headline = "lakestream - Benthos pipelines whose streams are Iceberg tables - " + documentationURL

// sayWhatWeAre puts the headline where Benthos, which has no option for it, would
// introduce itself.
func sayWhatWeAre() {
	ucli.AppHelpTemplate = strings.Replace(ucli.AppHelpTemplate, `{{template "helpNameTemplate" .}}`, headline, 1)
}

// mainSchema is that of Benthos with our top-level block and defaults.
func mainSchema() *service.ConfigSchema {
	release, built := buildInfo()
	schema := service.GlobalEnvironment().FullConfigSchema(release, built)
	schema.SetFieldDefault(httpAddress, "http", "address")
	return schema.Field(config.TopLevelField())
}

// buildInfo returns the version and the time of the commit, from the linker or
// else from the Go toolchain.
func buildInfo() (release, built string) {
	release, built = version, date
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release, built
	}
	if release == "" {
		release = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" && built == "" {
			built = s.Value
		}
	}
	return release, built
}
