package natskv

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
)

// serverLogger passes the server's log on. A fatal error, after which the server
// would end a process of its own, is kept for whoever starts it.
type serverLogger struct {
	logger *slog.Logger
	// running is set once the server has started. Until then its warnings tell how
	// it recovers its files after a process was killed, which is detail.
	running atomic.Bool

	mu    sync.Mutex
	fatal error // guarded by mu
}

// Noticef is told of every start and stop: detail, for an embedded server.
func (l *serverLogger) Noticef(format string, v ...any) { l.log(l.logger.Debug, format, v) }

func (l *serverLogger) Warnf(format string, v ...any) {
	if l.running.Load() {
		l.log(l.logger.Warn, format, v)
		return
	}
	l.log(l.logger.Debug, format, v)
}

func (l *serverLogger) Errorf(format string, v ...any) { l.log(l.logger.Error, format, v) }

func (l *serverLogger) Debugf(format string, v ...any) { l.log(l.logger.Debug, format, v) }

func (l *serverLogger) Tracef(format string, v ...any) { l.log(l.logger.Debug, format, v) }

// Fatalf does not end the process, as the interface leaves open.
func (l *serverLogger) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fatal == nil {
		l.fatal = fmt.Errorf(format, v...)
	}
}

func (l *serverLogger) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatal
}

func (l *serverLogger) log(write func(string, ...any), format string, v []any) {
	write("NATS server: " + fmt.Sprintf(format, v...))
}
