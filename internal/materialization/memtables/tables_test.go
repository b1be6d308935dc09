package memtables_test

import (
	"testing"

	"github.com/lakestream-go/lakestream/internal/materialization/memtables"
	"github.com/lakestream-go/lakestream/internal/materialization/tablestest"
)

func TestAcceptance(t *testing.T) {
	tablestest.Run(t, func(*testing.T) tablestest.Subject {
		tables := memtables.New()
		return tablestest.Subject{Catalog: tables, Admin: tables}
	})
}
