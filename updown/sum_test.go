package updown

import (
	"math/rand/v2"
	"testing"
)

func TestSum(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for n := range 3000 {
		dist := make([]uint8, n)
		want := uint64(0)
		for i := range dist {
			dist[i] = uint8(255 - rnd.IntN(1+n%256))
			want += uint64(dist[i])
		}
		if got := sum(dist); got != want {
			t.Fatalf("%d distances: %d, want %d", n, got, want)
		}
	}
}
