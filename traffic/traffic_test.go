package traffic_test

import (
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/traffic"
)

// matrix is a pattern by sender and receiver.
func matrix(t *testing.T, p traffic.Pattern, n int) [][]int64 {
	t.Helper()
	m := make([][]int64, n)
	for i := range m {
		m[i] = make([]int64, n)
	}
	for dst := range n {
		last := -1
		for src, weight := range p.Senders(n, dst) {
			if src <= last || src >= n || src == dst || weight < 1 {
				t.Fatalf("%s of %d: %d sends %d to %d, after %d", p.Name, n, src, weight, dst, last)
			}
			last = src
			m[src][dst] = weight
		}
	}
	return m
}

// TestPatterns has what each pattern is known for, for all small numbers of ranks.
func TestPatterns(t *testing.T) {
	for n := 1; n <= 130; n++ {
		ring, tree, all := matrix(t, traffic.Ring, n), matrix(t, traffic.Tree, n), matrix(t, traffic.AllToAll, n)
		var edges int64
		for i := range n {
			sent := int64(0)
			for j := range n {
				if want := n > 1 && j == (i+1)%n; (ring[i][j] == 1) != want || !want && ring[i][j] != 0 {
					t.Fatalf("ring of %d: %d sends %d to %d", n, i, ring[i][j], j)
				}
				if (all[i][j] == 1) != (i != j) {
					t.Fatalf("all-to-all of %d: %d sends %d to %d", n, i, all[i][j], j)
				}
				short.MustEqual(t, tree[i][j], tree[j][i], "trees of", n, i, "and", j, "send", "to each other")
				sent += tree[i][j]
			}
			if edges += sent; sent > 4 { // a parent and two children in one tree, a parent in the other
				t.Fatalf("trees of %d: rank %d has %d neighbors", n, i, sent)
			}
		}
		// Two trees have n-1 edges each, in both directions, and join all ranks.
		if edges != 4*int64(n-1) || reached(tree) != n {
			t.Fatalf("trees of %d: %d edges, %d ranks reached", n, edges, reached(tree))
		}
	}
}

// reached counts the ranks that data of rank 0 comes to.
func reached(m [][]int64) int {
	seen := make([]bool, len(m))
	seen[0] = true
	list := []int{0}
	for i := 0; i < len(list); i++ {
		for j, weight := range m[list[i]] {
			if weight > 0 && !seen[j] {
				seen[j] = true
				list = append(list, j)
			}
		}
	}
	return len(list)
}

// TestBroadcast has data of rank 0 come to all others once, in as few steps as there can be.
func TestBroadcast(t *testing.T) {
	for n := 1; n <= 130; n++ {
		m := matrix(t, traffic.Broadcast, n)
		step := make([]int, n) // in which a rank has the data
		for dst := 1; dst < n; dst++ {
			for src := range n {
				if m[src][dst] > 0 {
					step[dst] += step[src] + 1
				}
			}
			if most := bits.Len(uint(n - 1)); step[dst] < 1 || step[dst] > most {
				t.Fatalf("%d ranks: rank %d has the data in step %d, want at most %d", n, dst, step[dst], most)
			}
		}
		short.MustEqual(t, reached(m), n, "ranks have the data")
	}
}

// TestHalo compares neighbors with those by coordinates.
func TestHalo(t *testing.T) {
	for _, dims := range [][]int{{1}, {2}, {7}, {4, 3}, {1, 5}, {2, 3, 4}, {3, 1, 2, 2}} {
		n := 1
		for _, d := range dims {
			n *= d
		}
		m := matrix(t, traffic.Halo(dims), n)
		coordinates := func(rank int) []int {
			at := make([]int, len(dims))
			for i, d := range slices.Backward(dims) {
				at[i] = rank % d
				rank /= d
			}
			return at
		}
		for i := range n {
			for j := range n {
				a, b := coordinates(i), coordinates(j)
				want, apart := int64(0), 0
				for k, d := range dims {
					if a[k] != b[k] {
						apart++
					}
					if (a[k]+1)%d == b[k] && d > 1 {
						want++
					}
					if (b[k]+1)%d == a[k] && d > 1 {
						want++
					}
				}
				if apart != 1 {
					want = 0
				}
				short.Equal(t, m[i][j], want, dims, i, "sends", "to", j)
			}
		}
	}
}

// TestDims has grids of any number of ranks.
func TestDims(t *testing.T) {
	for _, tt := range []struct {
		n, dimensions int
		want          []int
	}{{64, 3, []int{4, 4, 4}}, {48, 3, []int{4, 4, 3}}, {7, 2, []int{7, 1}}, {1, 2, []int{1, 1}}, {582, 3, []int{97, 3, 2}}, {1000, 2, []int{40, 25}}} {
		short.EqualList(t, traffic.Dims(tt.n, tt.dimensions), tt.want, tt.n, "ranks")
	}
}

// TestTree compares the two trees of 6 and 7 ranks with those that NCCL makes: each rank's parent.
func TestTree(t *testing.T) {
	for n, parents := range map[int][2][]int{
		// By hand from the definition, in the order of ranks; -1 is a root.
		6: {{-1, 2, 4, 2, 0, 4}, {1, 5, 3, 1, 3, -1}},
		7: {{-1, 2, 4, 2, 0, 6, 4}, {5, -1, 3, 5, 3, 1, 0}},
	} {
		want := make([][]int64, n)
		for i := range want {
			want[i] = make([]int64, n)
		}
		for _, tree := range parents {
			for i, p := range tree {
				if p >= 0 {
					want[i][p]++
					want[p][i]++
				}
			}
		}
		got := matrix(t, traffic.Tree, n)
		for i := range n {
			for j := range n {
				short.Equal(t, got[i][j], want[i][j], n, "ranks", i, "sends", "to", j)
			}
		}
	}
}

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
