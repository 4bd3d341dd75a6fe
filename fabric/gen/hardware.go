package gen

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// hardware describes the switches and adapters of one speed.
type hardware struct {
	speed           fabric.Speed
	switchID, caID  uint16 // device IDs
	chip            string // in the name of a switch as delivered
	model, director string // in the name of a managed switch
	adapter         string // in the name of an adapter without a driver
}

// generations lists what Mellanox and NVIDIA made for each speed, slowest first. Every made
// fabric has the first, unless Options.Speeds asks for others.
var generations = []hardware{
	{fabric.QDR, infiniScaleIV, connectX2, "Infiniscale-IV", "IS5035", "IS5600", "ConnectX2"},
	{fabric.FDR, 0xc738, 0x1003, "SwitchX", "SX6036", "SX6536", "ConnectX3"},
	{fabric.EDR, 0xcb20, 0x1013, "SwitchIB", "MSB7700", "CS7500", "ConnectX4"},
	{fabric.HDR, 0xd2f0, 0x101b, "Quantum", "MQM8700", "MCS8500", "ConnectX6"},
	{fabric.NDR, 0xd2f2, 0x1021, "Quantum-2", "MQM9700", "MCS9500", "ConnectX7"},
	{fabric.XDR, 0xd2f4, 0x1023, "Quantum-3", "Q3400_RA", "Q3800", "ConnectX8"},
}

// setSpeeds gives each system of switches a random one of the speeds, with its hardware,
// and each cable the speed of its slower end. Adapters are as fast as their fastest cable.
func (p *Plan) setSpeeds(speeds []fabric.Speed, seed uint64) error {
	var of []*hardware
	for _, s := range speeds {
		i := slices.IndexFunc(generations, func(h hardware) bool { return h.speed == s })
		if i < 0 {
			return fmt.Errorf("switches of speed %q: want QDR, FDR, EDR, HDR, NDR or XDR", s)
		}
		of = append(of, &generations[i])
	}
	random := rand.New(rand.NewPCG(seed, 2))
	system := map[fabric.GUID]*hardware{}
	for i := range p.nodes {
		if n := &p.nodes[i]; p.isSwitch(i) {
			if system[n.SystemGUID] == nil {
				system[n.SystemGUID] = of[random.IntN(len(of))]
			}
			n.DeviceID = system[n.SystemGUID].switchID
		}
	}
	for _, c := range p.cables {
		for k, e := range c.ends {
			other := c.ends[1-k].node
			if h := p.hardware(other); p.isSwitch(other) && !p.isSwitch(e.node) && p.hardware(e.node).speed < h.speed {
				p.nodes[e.node].DeviceID = h.caID
			}
		}
	}
	for i := range p.cables {
		c := &p.cables[i]
		c.link.Speed = min(p.hardware(c.ends[0].node).speed, p.hardware(c.ends[1].node).speed)
	}
	return nil
}
