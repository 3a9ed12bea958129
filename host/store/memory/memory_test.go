package memory_test

import (
	"testing"

	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/host/store/memory"
	"github.com/skillhost/skill/host/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return memory.Open() })
}
