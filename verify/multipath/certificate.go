package multipath

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify"
)

// proof is what a certificate is made of.
type proof struct {
	graph      *cdg
	level      []int32 // by channel: the longest chain of dependencies that ends there
	management bool
}

// Certificate proves that all choices together have no credit loop; nil if they have one. It
// covers management traffic too unless that adds a credit loop. Its form is that of
// certificates of static tables: Certificate.CheckAdaptive proves it again. A channel has the
// length of the longest chain of dependencies that ends there, so that those of CAs have 0.
func (r *Result) Certificate() *verify.Certificate {
	if r.proof == nil {
		return nil
	}
	g := r.proof.graph
	f := g.f
	c := &verify.Certificate{Management: r.proof.management, VLs: 1, Fabric: verify.FabricHash(f), Channels: []verify.NumberedChannel{}}
	add := func(port fabric.PortID, vl fabric.VL, number int32) {
		c.Channels = append(c.Channels, verify.NumberedChannel{GUID: f.Node(f.Owner(port)).GUID, Port: f.Num(port), VL: vl, Number: number})
		c.VLs = max(c.VLs, int(vl)+1)
	}
	for ch := range g.count() {
		if !g.used(ch) {
			continue
		}
		port := fabric.PortID(ch / len(g.vls))
		for _, vl := range g.alike(ch % len(g.vls)) {
			add(port, vl, r.proof.level[ch]+1)
		}
	}
	for i, port := range f.CAPorts() {
		if f.CASwitches()[i] == fabric.NoNode {
			continue
		}
		var vls []fabric.VL
		for _, c := range g.classes {
			for sl := range fabric.SL(lft.NumSLs) {
				switch {
				case c.sls>>sl&1 == 0:
				case g.read.SL2VL == nil:
					vls = append(vls, 0)
				default:
					vls = append(vls, g.read.SL2VL.At(0, port)[sl])
				}
			}
		}
		slices.Sort(vls)
		for _, vl := range slices.Compact(vls) {
			if vl != lft.DropVL {
				add(port, vl, 0)
			}
		}
	}
	slices.SortFunc(c.Channels, verify.NumberedChannel.Compare)
	return c
}

// alike lists the VLs that the i-th stands for.
func (p *plan) alike(i int) []fabric.VL {
	if p.copies != nil {
		return p.copies
	}
	return p.vls[i : i+1]
}
