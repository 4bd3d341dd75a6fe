package plugin

import (
	"fmt"
	"math"
	"runtime/metrics"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
)

// How much memory parsing takes at most, as a multiple of a file's size.
const (
	configTimes   = 64
	groupsTimes   = 8
	jobsTimes     = 16
	guid2lidTimes = 16
	labelsTimes   = 16
)

// routingNeeds estimates the memory, in bytes, that routing and verifying a
// fabric takes at most: two and a half times what they have in use.
func routingNeeds(f *fabric.Fabric) int64 {
	return int64(f.NumSwitches())*int64(f.MaxLID())*16 + int64(f.NumPorts())*256 + 32<<20
}

// noRoomError says that something takes more memory than this process may have.
type noRoomError struct {
	what       string
	need, room int64 // bytes
}

func (e *noRoomError) Error() string {
	return fmt.Sprintf("%s may take %s of memory, and this process may have %s more (LimitAS, MemoryMax, or all that the machine has)",
		e.what, files.Size(e.need), files.Size(e.room))
}

// fits returns an error, with what as the purpose, if this process may not
// take need more bytes. Go ends a process that gets no memory, and this one
// is OpenSM: code that takes much asks first.
func fits(need int64, what string) error {
	if room := room(); room < need {
		return &noRoomError{what, need, room}
	}
	return nil
}

// room returns how many bytes this process may still take, including free memory of the
// heap.
func room() int64 {
	available := files.Available()
	for _, class := range []string{"free", "released"} {
		s := []metrics.Sample{{Name: "/memory/classes/heap/" + class + ":bytes"}}
		if metrics.Read(s); s[0].Value.Kind() == metrics.KindUint64 {
			available += min(int64(s[0].Value.Uint64()), math.MaxInt64-available) // MaxInt64 if no limit is known
		}
	}
	return available
}
