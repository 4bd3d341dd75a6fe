package traffic_test

import (
	"errors"
	"math"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/traffic"
)

// write is the program of an operation among n ranks, several times.
func write(t *testing.T, name string, n int, size int64, times int, multicast bool) *traffic.Program {
	t.Helper()
	o := short.Must(traffic.Parse(name))(t)
	w := traffic.NewWriter(n, 1<<20)
	w.Multicast = multicast
	members := make([]int32, n)
	for i := range members {
		members[i] = int32(i)
	}
	for range times {
		short.Check(t, w.Add(o, members, float64(size)))
	}
	return w.Program()
}

// collectives are operations with steps, and the bytes of a data of one by n ranks in all.
var collectives = map[string]func(n float64) float64{
	"allreduce-ring": func(n float64) float64 { return 2 * (n - 1) },
	"allreduce-tree": func(n float64) float64 { return 2 * (n - 1) },
	"reduce-scatter": func(n float64) float64 { return n - 1 },
	"all-gather":     func(n float64) float64 { return n - 1 },
	"alltoall":       func(n float64) float64 { return n - 1 },
	"alltoall-bruck": func(n float64) float64 {
		bits := 0.0
		for i := range int(n) {
			for ; i > 0; i &= i - 1 {
				bits++
			}
		}
		return bits
	},
	"broadcast":      func(n float64) float64 { return n - 1 },
	"broadcast-ring": func(n float64) float64 { return n - 1 },
	"halo": func(n float64) float64 {
		sent := 0.0
		for _, d := range traffic.Dims(int(n), 3) {
			if d > 1 {
				sent += 2 * n
			}
		}
		return sent
	},
	"shift:1":     func(n float64) float64 { return n * min(1, n-1) },
	"permutation": func(n float64) float64 { return n * min(1, n-1) },
}

// TestProgramBytes has the bytes of closed formulas in programs, and between any two ranks those of the pattern.
func TestProgramBytes(t *testing.T) {
	t.Parallel()
	for name, total := range collectives {
		o, _ := traffic.Parse(name)
		for n := 1; n <= short.Of(70, 20); n++ {
			for _, each := range []int64{64, 5<<20 + 64} { // the second in several loops and pieces
				size := each * int64(n)
				if each > 64 && n > 9 {
					continue
				}
				p := write(t, name, n, size, 1, false)
				sent := make([][]int64, n)
				for i := range sent {
					sent[i] = make([]int64, n)
				}
				sum := int64(0)
				for _, m := range p.Messages {
					sent[m.Src][m.Dst] += m.Bytes
					sum += m.Bytes
				}
				short.Equal(t, float64(sum), total(float64(n))*float64(size), name, "of", n, sum, "bytes")
				pattern, _ := o.Pattern(n)
				for src, row := range matrix(t, pattern, n) {
					for dst, amount := range row {
						if want := float64(amount) * o.Share(n) * float64(size); math.Abs(float64(sent[src][dst])-want) > 1e-6*want {
							t.Fatalf("%s of %d: %d sends %d to %d, want %g", name, n, src, sent[src][dst], dst, want)
						}
					}
				}
			}
		}
	}
}

// TestProgramWaits follows what ranks know: what a message carries is of its sender, and of the messages to the
// sender that it waits for. So a collective is complete only if each step waits for what it needs.
func TestProgramWaits(t *testing.T) {
	t.Parallel()
	for name := range collectives {
		for n := 2; n <= short.Of(64, 20); n++ {
			size := int64(n) * 1000
			if n < 6 {
				size *= 6000 // loops and pieces
			}
			checkWaits(t, name, n, size)
		}
	}
}

func checkWaits(t *testing.T, name string, n int, size int64) {
	t.Helper()
	p := write(t, name, n, size, 2, false)
	reduces := name == "allreduce-ring" || name == "allreduce-tree" // what comes before a loop is not in its parts
	all := uint64(math.MaxUint64) >> (64 - n)
	carries := make([]uint64, len(p.Messages))
	reaches, full := make([]uint64, n), make([]int64, n) // by rank: who it hears of, and bytes of messages that carry all
	for i, m := range p.Messages {
		carries[i] = 1 << m.Src
		for _, k := range p.After(i) {
			before := p.Messages[k]
			if int(k) >= i || before.Dst != m.Src && before.Src != m.Src {
				t.Fatalf("%s of %d: message %d of %d waits for %d, from %d to %d", name, n, i, m.Src, k, before.Src, before.Dst)
			}
			if before.Dst == m.Src && (before.Bytes > 0 || !reduces) {
				carries[i] |= carries[k]
			}
		}
		reaches[m.Dst] |= carries[i]
		if carries[i] == all && i < len(p.Messages)/2 { // the first of two
			full[m.Dst] += m.Bytes
		}
	}
	for rank := range n {
		want := all
		switch name {
		case "broadcast", "broadcast-ring":
			want = 1
		case "halo", "shift:1", "permutation":
			want = 0 // one message each, of which the pattern tells
		}
		short.Equal(t, reaches[rank]&want, want, name, "of", n, "rank", rank, "hears of", reaches[rank], "only")
	}
	if sum := int64(0); reduces {
		for _, bytes := range full {
			sum += bytes
		}
		short.Equal(t, sum, size*int64(n-1), name, "of", n, "bytes are reduced from all ranks")
	}
}

// TestProgramOrder has a rank begin an operation when its part in the one before is over.
func TestProgramOrder(t *testing.T) {
	t.Parallel()
	for name := range collectives {
		const n = 12
		once := len(write(t, name, n, 12000, 1, false).Messages)
		p := write(t, name, n, 12000, 2, false)
		short.MustEqual(t, len(p.Messages), 2*once, name, once, "messages, twice")
		// What the messages of the second one wait for, by any number of steps.
		behind := make([]map[int32]bool, len(p.Messages))
		for i := range p.Messages {
			behind[i] = map[int32]bool{}
			for _, k := range p.After(i) {
				behind[i][k] = true
				for j := range behind[k] {
					behind[i][j] = true
				}
			}
		}
		last := make(map[[2]int32]int32) // of each pair of ranks, in the first one
		for i, m := range p.Messages[:once] {
			if m.Bytes > 0 {
				last[[2]int32{m.Src, m.Dst}] = int32(i)
			}
		}
		for i := once; i < len(p.Messages); i++ {
			m := p.Messages[i]
			for pair, k := range last {
				if m.Bytes > 0 && pair[1] == m.Src && !behind[i][k] {
					t.Errorf("%s: rank %d sends in the second one before it has all of the first one, from %d", name, m.Src, pair[0])
				}
			}
		}
	}
}

// TestProgramMulticast has broadcasts and all-gathers send each part once.
func TestProgramMulticast(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"broadcast": 1, "broadcast-ring": 1, "all-gather": 7} {
		p := write(t, name, 7, 7000, 2, true)
		sent, bytes := 0, int64(0)
		for i, m := range p.Messages {
			if m.Bytes == 0 {
				continue
			}
			sent++
			bytes += m.Bytes
			if m.Dst != traffic.All || sent > want && len(p.After(i)) == 0 {
				t.Errorf("%s: message %d goes to %d and waits for %v", name, i, m.Dst, p.After(i))
			}
		}
		if sent != 2*want || bytes != 14000 {
			t.Errorf("%s: %d messages of %d bytes", name, sent, bytes)
		}
	}
}

// TestProgramLimit refuses programs that are too long, and cuts long messages.
func TestProgramLimit(t *testing.T) {
	t.Parallel()
	o, _ := traffic.Parse("alltoall")
	w := traffic.NewWriter(100, 1000)
	members := make([]int32, 100)
	var long *traffic.TooLongError
	if err := w.Add(o, members, 1<<20); !errors.As(err, &long) || err.Error() != "more than 1000 messages" {
		t.Errorf("%v", err)
	}
	p := write(t, "shift:1", 2, 5<<29, 1, false)
	sum := int64(0)
	for _, m := range p.Messages {
		if m.Bytes > traffic.MaxBytes {
			t.Errorf("a message of %d bytes", m.Bytes)
		}
		sum += m.Bytes
	}
	short.Equal(t, sum, 2*5<<29)
}
