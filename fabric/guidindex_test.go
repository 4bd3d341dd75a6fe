package fabric

import (
	"testing"

	"pgregory.net/rapid"
)

// What an index finds is what a map of the same GUIDs has, GUID 0 and those
// that begin at one slot included.
func TestGUIDIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x GUIDIndex
		want := make(map[GUID]int32)
		guid := rapid.Custom(func(t *rapid.T) GUID {
			return GUID(rapid.Uint64Range(0, 40).Draw(t, "low")) << rapid.SampledFrom([]int{0, 58}).Draw(t, "shift")
		})
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				g := guid.Draw(t, "guid")
				if _, ok := want[g]; !ok {
					want[g] = int32(len(want))
					x.Add(g, want[g])
				}
			},
			"grow": func(t *rapid.T) { x.Grow(rapid.IntRange(-1, 200).Draw(t, "n")) },
			"": func(t *rapid.T) {
				g := guid.Draw(t, "guid")
				i, ok := want[g]
				if !ok {
					i = -1
				}
				if got := x.Find(g); got != i {
					t.Fatalf("Find(%s) = %d, want %d", g, got, i)
				}
			},
		})
	})
}
