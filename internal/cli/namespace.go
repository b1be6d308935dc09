package cli

import (
	"context"
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/lakestream-go/lakestream/engine"
)

// namespaceInfo is a namespace in a result.
type namespaceInfo struct {
	Name     string            `json:"name"`
	Version  uint64            `json:"version"`
	Streams  int               `json:"streams"`
	Settings map[string]string `json:"settings"`
}

func describeNamespace(e *engine.Engine, n engine.Namespace) namespaceInfo {
	info := namespaceInfo{Name: n.Name, Version: n.Version, Settings: settingsMap(n.Settings, n.Properties)}
	for _, s := range e.Streams() {
		if strings.HasPrefix(s.Name(), n.Name+"/") {
			info.Streams++
		}
	}
	return info
}

func (in *invocation) printNamespace(e *engine.Engine, n engine.Namespace) error {
	info := describeNamespace(e, n)
	return in.print(info, func(p *page) {
		p.pairs(append([]string{"namespace", n.Name, "streams", number(info.Streams)}, settingsOf(n.Settings, n.Properties)...)...)
	})
}

func (a app) namespaceCreate() *ucli.Command {
	return a.command(spec{
		name: "create", usage: "Create a namespace", args: "NAMESPACE [KEY=VALUE...]", min: 1, max: maxSettings,
		description: "What is set holds for streams that do not say otherwise. Streams create their namespace themselves. " + settingsHelp(),
		run: func(ctx context.Context, in *invocation) error {
			assignments, err := parseAssignments(in.args[1:])
			if err != nil {
				return err
			}
			cfg := engine.NamespaceConfig{Properties: make(map[string]string)}
			if err := applySettings(assignments, &cfg.Settings); err != nil {
				return err
			}
			applyProperties(assignments, cfg.Properties)
			return in.withEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
				n, err := e.CreateNamespace(ctx, in.args[0], cfg)
				if err != nil {
					return hint(err, engine.ErrAlreadyExists, "namespace set changes it")
				}
				return in.printNamespace(e, n)
			})
		},
	})
}

func (a app) namespaceList() *ucli.Command {
	return a.command(spec{
		name: "ls", usage: "List namespaces",
		run: func(ctx context.Context, in *invocation) error {
			return in.withEngine(ctx, func(_ context.Context, e *engine.Engine) error {
				all := []namespaceInfo{}
				for _, n := range e.Namespaces() {
					all = append(all, describeNamespace(e, n))
				}
				return in.print(all, func(p *page) { writeNamespaces(p, all) })
			})
		},
	})
}

func writeNamespaces(p *page, all []namespaceInfo) {
	if len(all) == 0 {
		p.linef("no namespaces yet")
		return
	}
	rows := make([][]string, len(all))
	for i, n := range all {
		rows[i] = []string{n.Name, number(n.Streams), number(len(n.Settings))}
	}
	p.table([]string{"NAMESPACE", "STREAMS#", "SETTINGS#"}, rows)
}

func (a app) namespaceDescribe() *ucli.Command {
	return a.command(spec{
		name: "describe", usage: "Show a namespace and what its streams inherit", args: "NAMESPACE", min: 1, max: 1,
		run: func(ctx context.Context, in *invocation) error {
			return in.withEngine(ctx, func(_ context.Context, e *engine.Engine) error {
				n, err := e.Namespace(in.args[0])
				if err != nil {
					return err
				}
				return in.printNamespace(e, n)
			})
		},
	})
}

func (a app) namespaceSet() *ucli.Command {
	return a.command(spec{
		name: "set", usage: "Change what the streams of a namespace inherit, and its properties", args: "NAMESPACE KEY=VALUE...", min: 2, max: maxSettings,
		description: settingsHelp(),
		run: func(ctx context.Context, in *invocation) error {
			assignments, err := parseAssignments(in.args[1:])
			if err != nil {
				return err
			}
			if err := applySettings(assignments, &engine.Settings{}); err != nil {
				return err
			}
			return in.withEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
				n, err := e.UpdateNamespace(ctx, in.args[0], func(cfg *engine.NamespaceConfig) error {
					applyProperties(assignments, cfg.Properties)
					return applySettings(assignments, &cfg.Settings)
				})
				if err != nil {
					return err
				}
				return in.printNamespace(e, n)
			})
		},
	})
}

func (a app) namespaceDelete() *ucli.Command {
	var yes bool
	return a.command(spec{
		name: "delete", usage: "Delete a namespace that holds no streams", args: "NAMESPACE", min: 1, max: 1,
		flags: []ucli.Flag{&ucli.BoolFlag{Name: "yes", Destination: &yes, Usage: "do not ask"}},
		run: func(ctx context.Context, in *invocation) error {
			if !yes {
				if err := in.confirm(fmt.Sprintf("namespace delete forgets the settings of namespace %s.", in.args[0])); err != nil {
					return err
				}
			}
			return in.withEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
				if err := e.DropNamespace(ctx, in.args[0]); err != nil {
					return err
				}
				return in.print(deletion{Name: in.args[0], Deleted: true}, func(p *page) { p.linef("namespace %s was deleted", in.args[0]) })
			})
		},
	})
}
