package plugin

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
)

// bridged returns a logger that goes through Benthos's into text.
func bridged(level slog.Level) (*slog.Logger, *strings.Builder) {
	var text strings.Builder
	handler := slog.NewTextHandler(&text, &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})
	return newLogger(service.NewLoggerFromSlog(slog.New(handler))), &text
}

func TestLogLinesKeepTheirLevelAndAttributes(t *testing.T) {
	logger, text := bridged(slog.LevelInfo)
	logger.Debug("too fine")
	logger.With("shard", "s00").Info("opened", "revision", 7)
	logger.WithGroup("store").Warn("slow", slog.Group("get", "ms", 12), "absent", nil)
	logger.Error("broken")
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	require.Len(t, lines, 3)
	require.Contains(t, lines[0], "level=INFO msg=opened")
	require.Contains(t, lines[0], "shard=s00")
	require.Contains(t, lines[0], "revision=7")
	require.Contains(t, lines[1], "level=WARN msg=slow")
	require.Contains(t, lines[1], "store.get.ms=12")
	require.NotContains(t, lines[1], "absent")
	require.Contains(t, lines[2], "level=ERROR msg=broken")
}

func TestWithoutALoggerNothingIsLogged(*testing.T) {
	newLogger(nil).Error("nobody reads this", "key", "value")
}
