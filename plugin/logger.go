package plugin

import (
	"context"
	"log/slog"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// logHandler passes an engine's log to that of Benthos.
type logHandler struct {
	logger *service.Logger
	prefix string // of attributes in a group
}

func newLogger(logger *service.Logger) *slog.Logger { return slog.New(logHandler{logger: logger}) }

// Enabled leaves the choice of levels to Benthos, which does not tell it.
func (h logHandler) Enabled(context.Context, slog.Level) bool { return h.logger != nil }

func (h logHandler) Handle(_ context.Context, r slog.Record) error {
	logger := h.logger
	if r.NumAttrs() > 0 {
		fields := make([]any, 0, 2*r.NumAttrs())
		r.Attrs(func(a slog.Attr) bool {
			fields = h.appendField(fields, a)
			return true
		})
		logger = logger.With(fields...)
	}
	switch {
	case r.Level >= slog.LevelError:
		logger.Error(r.Message)
	case r.Level >= slog.LevelWarn:
		logger.Warn(r.Message)
	case r.Level >= slog.LevelInfo:
		logger.Info(r.Message)
	default:
		logger.Debug(r.Message)
	}
	return nil
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	fields := make([]any, 0, 2*len(attrs))
	for _, a := range attrs {
		fields = h.appendField(fields, a)
	}
	return logHandler{logger: h.logger.With(fields...), prefix: h.prefix}
}

func (h logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return logHandler{logger: h.logger, prefix: h.prefix + name + "."}
}

// appendField appends an attribute's name and text; those of a group one by one.
func (h logHandler) appendField(fields []any, a slog.Attr) []any {
	value := a.Value.Resolve()
	if value.Kind() == slog.KindGroup {
		inner := h
		if a.Key != "" {
			inner.prefix += a.Key + "."
		}
		for _, member := range value.Group() {
			fields = inner.appendField(fields, member)
		}
		return fields
	}
	if a.Equal(slog.Attr{}) || value.Kind() == slog.KindAny && value.Any() == nil {
		return fields
	}
	return append(fields, h.prefix+a.Key, value.String())
}
