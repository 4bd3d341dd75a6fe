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

// GUIDs chosen to begin at one slot are found without looking at all of them: this
// test would take minutes else.
func TestGUIDIndexChosen(t *testing.T) {
	const inverse = 0xf1de83e19937733d // of the factor in near, modulo 1<<64
	if f := uint64(0x9e3779b97f4a7c15); f*inverse != 1 {
		t.Fatal("the factor is another")
	}
	var x GUIDIndex
	chosen := make([]GUID, 0, 200_000)
	for i := uint64(1); len(chosen) < cap(chosen); i++ {
		if v := i * inverse; v < 1<<62 {
			chosen = append(chosen, GUID(v<<2))
		}
	}
	for i, g := range chosen {
		if had := x.Add(g, int32(i)); had >= 0 {
			t.Fatalf("%s is said to have index %d", g, had)
		}
	}
	for i, g := range chosen {
		if got := x.Find(g); got != int32(i) {
			t.Fatalf("Find(%s) = %d, want %d", g, got, i)
		}
		if had := x.Add(g, 0); had != int32(i) {
			t.Fatalf("%s is said to have index %d, want %d", g, had, i)
		}
		if got := x.Find(g + 1); got != -1 {
			t.Fatalf("Find(%s) = %d, want -1", g+1, got)
		}
	}
}
