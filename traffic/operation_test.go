package traffic_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/traffic"
)

// TestParse has what a rank sends of a gigabyte, in all operations.
func TestParse(t *testing.T) {
	for name, want := range map[string]float64{ // by 12 ranks in all, of the data of one
		"allreduce-ring": 22,
		"reduce-scatter": 11,
		"all-gather":     11,
		"allreduce-tree": 22, // two trees of eleven edges, each both ways, half of the data
		"alltoall":       11,
		"alltoall:4":     12 * 3. / 4,
		"alltoall:1":     0,
		"broadcast":      11,
		"broadcast-ring": 11,
		"alltoall-bruck": 6 + 6 + 4 + 4, // the numbers below 12 with bit 0, 1, 2, 3
		"halo":           12 * 6,        // 3 x 2 x 2
		"halo:3x4":       12 * 4,
		"shift:5":        12,
		"shift:-12":      0,
		"permutation":    12,
		"permutation:9":  12,
	} {
		o := short.Must(traffic.Parse(name))(t)
		p := short.Must(o.Pattern(12))(t)
		sum := 0.0
		for _, row := range matrix(t, p, 12) {
			for _, n := range row {
				sum += float64(n) * o.Share(12)
			}
		}
		if math.Abs(sum-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, sum, want)
		}
	}
	for name, want := range map[string]string{
		"":              `pattern "": want allreduce-ring, `,
		"ring":          `pattern "ring": want allreduce-ring, `,
		"shift":         `pattern "shift": want`,
		"shift:x":       `pattern "shift:x": want`,
		"permutation:":  `pattern "permutation:": want`,
		"alltoall:":     `pattern "alltoall:": want alltoall, or alltoall:GROUP`,
		"alltoall:0":    `pattern "alltoall:0": want alltoall, or alltoall:GROUP`,
		"halo:0x3":      `pattern "halo:0x3": want halo, or halo:AxBxC`,
		"halo:":         `pattern "halo:": want halo`,
		"halo:99999999": `pattern "halo:99999999": want halo`,
	} {
		if _, err := traffic.Parse(name); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
	o, _ := traffic.Parse("halo:3x4")
	if _, err := o.Pattern(13); err == nil || err.Error() != "a grid of 12 for 13 ranks" {
		t.Error(err)
	}
	o, _ = traffic.Parse("alltoall:5")
	if _, err := o.Pattern(13); err == nil || err.Error() != "groups of 5 ranks for 13 ranks" {
		t.Error(err)
	}
}

// TestGroups: in a program each group does what an all-to-all of its ranks does by itself.
func TestGroups(t *testing.T) {
	alone, all := write(t, "alltoall", 4, 4000, 2, false), write(t, "alltoall:4", 12, 4000, 2, false)
	of := make([][]int32, 3) // by group: its messages
	for i, m := range all.Messages {
		short.MustEqual(t, m.Src/4, m.Dst/4, m.Src, "sends to", m.Dst)
		of[m.Src/4] = append(of[m.Src/4], int32(i))
	}
	for g, list := range of {
		short.MustEqual(t, len(list), len(alone.Messages), "group", g, "messages")
		for k, want := range alone.Messages {
			m := all.Messages[list[k]]
			if m.Src%4 != want.Src || m.Dst%4 != want.Dst || m.Bytes != want.Bytes {
				t.Errorf("group %d, message %d: %v, want %v", g, k, m, want)
			}
			var after []int32
			for _, i := range all.After(int(list[k])) {
				after = append(after, int32(slices.Index(list, i)))
			}
			short.EqualList(t, after, alone.After(k), "group", g, "message", k, "waits")
		}
	}
}

// TestShift has each rank send to the one a fixed distance ahead, a permutation along one cycle, and
// all to storage.
func TestShift(t *testing.T) {
	for n := 1; n < 20; n++ {
		for by := -25; by < 25; by++ {
			for src, row := range matrix(t, traffic.Shift(by), n) {
				for dst, amount := range row {
					if want := dst != src && (src+by-dst)%n == 0; (amount == 1) != want {
						t.Fatalf("%d ranks by %d: %d sends %d to %d", n, by, src, amount, dst)
					}
				}
			}
		}
		o, _ := traffic.Parse("permutation:3")
		p, _ := o.Pattern(n)
		short.Equal(t, reached(matrix(t, p, n)), n, "a permutation", "one cycle")
		few := n / 3
		storage, _ := traffic.ToStorage(few).Pattern(n)
		for src, row := range matrix(t, storage, n) {
			for dst, amount := range row {
				if want := src < n-few && dst >= n-few; (amount == 1) != want {
					t.Fatalf("%d of %d are storage: %d sends %d to %d", few, n, src, amount, dst)
				}
			}
		}
	}
}
