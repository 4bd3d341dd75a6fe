package topology

import (
	"testing"

	"github.com/ibweave/ibweave/fabric"
)

// 72 spines, 144 leaves and 10,368 hosts: 10,584 nodes, 20,736 cables.
func BenchmarkParse10kNodes(b *testing.B) {
	text := Append(nil, fatTree(b, 72, fabric.Link{Width: 4, Speed: fabric.NDR}))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Parse("bench", text, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend10kNodes(b *testing.B) {
	f := fatTree(b, 72, fabric.Link{Width: 4, Speed: fabric.NDR})
	text := Append(nil, f)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		text = Append(text[:0], f)
	}
}
