package banyan

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/mft"
)

// Network is a banyan network found in a fabric, with the places of elements and
// processors.
type Network struct {
	Fabric *fabric.Fabric
	Stages int
	// Outputs are the ports by which processors send, Inputs those by which they receive;
	// both by address.
	Outputs, Inputs []fabric.PortID

	elements []fabric.NodeID // by stage and number
	stage    []int32         // by NodeID of switches
	number   []int32         // by NodeID of switches
	address  []int32         // by PortID of Outputs and Inputs, -1 for others
}

// Size returns the number of processors.
func (w *Network) Size() int { return 1 << w.Stages }

// WrapAround returns true if the two ports of each address are on one channel adapter. It
// can then forward packets that it received, as a second phase needs.
func (w *Network) WrapAround() bool {
	return slices.EqualFunc(w.Outputs, w.Inputs, func(p, q fabric.PortID) bool { return w.Fabric.Owner(p) == w.Fabric.Owner(q) })
}

// Element returns the switch with this stage and number from the top.
func (w *Network) Element(stage, number int) fabric.NodeID {
	return w.elements[stage*w.Size()/2+number]
}

// Position returns the stage of a switch and its number from the top.
func (w *Network) Position(s fabric.NodeID) (stage, number int) {
	return int(w.stage[s]), int(w.number[s])
}

// Address returns the address of the processor that a port belongs to, and true if the
// processor sends by that port; -1 for ports of no processor.
func (w *Network) Address(p fabric.PortID) (address int, sends bool) {
	a := int(w.address[p])
	return a, a >= 0 && w.Outputs[a] == p
}

// Detect recognizes a banyan network. Its switches must have inputs on ports 1 and 2 and
// outputs on 3 and 4, as Banyan makes them; descriptions and the order of GUIDs do not
// matter. The error says what is different. It takes O(ports).
//
// It finds the addresses by which packets are routed: each return path through the inputs,
// from an output of stage 0, leads to one processor, and the input that it takes at stage
// i is bit i of the processor's address (InLink). That numbers all links, and every cable
// is checked.
func Detect(f *fabric.Fabric) (*Network, error) {
	w := &Network{Fabric: f}
	for n := 1; n <= MaxStages; n++ {
		if f.NumSwitches() == n<<n/2 {
			w.Stages = n
		}
	}
	if w.Stages == 0 {
		return nil, fmt.Errorf("%d switches; a network of n stages has n * 2^(n-1)", f.NumSwitches())
	}
	size := w.Size()
	if ports := text.CountIf(f.CAPorts(), func(p fabric.PortID) bool { return f.PortCounts(p, fabric.ForLoad) }); ports != 2*size {
		return nil, fmt.Errorf("%d ports of channel adapters; a network of %d stages has %d", ports, w.Stages, 2*size)
	}
	last := fabric.NoNode
	for _, s := range f.Switches() {
		for num := fabric.PortNum(1); num <= f.Node(s).NumPorts; num++ {
			p := f.Port(s, num)
			q := f.Peer(p)
			if num > elementPorts && q != fabric.NoPort && f.Kind(f.Owner(q)) == fabric.AggregationKind {
				continue
			}
			if (q != fabric.NoPort) != (num <= elementPorts) {
				return nil, fmt.Errorf("%s: cables are on ports 1 to %d of each switch", f.PortName(p), elementPorts)
			}
			if q != fabric.NoPort && f.IsSwitch(f.Owner(q)) && (f.Num(q) < outputPort) == (num < outputPort) {
				return nil, fmt.Errorf("a cable from %s to %s; outputs are on ports 3 and 4, inputs on 1 and 2", f.PortName(p), f.PortName(q))
			}
		}
		if f.Node(s).NumPorts < elementPorts {
			return nil, fmt.Errorf("switch %s has %d ports; elements have %d", f.Name(s), f.Node(s).NumPorts, elementPorts)
		}
		if last == fabric.NoNode && !f.IsSwitch(f.Owner(f.Peer(f.Port(s, outputPort)))) {
			last = s
		}
	}
	if last == fabric.NoNode {
		return nil, fmt.Errorf("no switch has a channel adapter on port %d", outputPort)
	}
	w.elements = slices.Repeat([]fabric.NodeID{fabric.NoNode}, f.NumSwitches())
	w.stage = slices.Repeat([]int32{-1}, f.NumSwitches())
	w.number = make([]int32, f.NumSwitches())
	w.address = slices.Repeat([]int32{-1}, f.NumPorts())
	w.Outputs = slices.Repeat([]fabric.PortID{fabric.NoPort}, size)
	w.Inputs = slices.Repeat([]fabric.PortID{fabric.NoPort}, size)
	if err := w.findSources(last, 0, 0); err != nil {
		return nil, err
	}
	if err := w.placeElements(); err != nil {
		return nil, err
	}
	return w, nil
}

// findSources finds the processors by the return paths from element s of a stage. bits has
// the address bits of the stages passed before.
func (w *Network) findSources(s fabric.NodeID, stage, bits int) error {
	f := w.Fabric
	for b := range 2 {
		p := f.Port(s, fabric.PortNum(inputPort+b))
		q := f.Peer(p)
		a := bits | b<<stage
		switch isSwitch := f.IsSwitch(f.Owner(q)); {
		case isSwitch != (stage < w.Stages-1):
			return fmt.Errorf("%s is %d stages from the processors' inputs and has a cable to %s; want a network of %d stages",
				f.PortName(p), stage+1, f.PortName(q), w.Stages)
		case isSwitch:
			if err := w.findSources(f.Owner(q), stage+1, a); err != nil {
				return err
			}
		default:
			if err := w.assignAddress(w.Outputs, a, q); err != nil {
				return err
			}
		}
	}
	return nil
}

// assignAddress sets list[a] to p, the port with that address; list is Outputs or Inputs.
// It is an error if p has an address already.
func (w *Network) assignAddress(list []fabric.PortID, a int, p fabric.PortID) error {
	if w.address[p] >= 0 {
		return fmt.Errorf("%s would be processor %d and processor %d", w.Fabric.PortName(p), w.address[p], a)
	}
	list[a] = p
	w.address[p] = int32(a)
	return nil
}

// placeElements numbers the elements, starting at the processors' outputs, by the
// interconnection functions, and finds the processors' inputs.
func (w *Network) placeElements() error {
	f := w.Fabric
	join := func(from fabric.PortID, stage, link int) error {
		to := f.Peer(from)
		s := f.Owner(to)
		if !f.IsSwitch(s) || int(f.Num(to)) != inputPort+link%2 {
			return fmt.Errorf("a cable from %s to %s; want one to port %d of a switch, input link %d of stage %d",
				f.PortName(from), f.PortName(to), inputPort+link%2, link, stage)
		}
		at := &w.elements[stage*w.Size()/2+link/2]
		if *at == fabric.NoNode && w.stage[s] < 0 {
			*at = s
			w.stage[s], w.number[s] = int32(stage), int32(link/2)
		}
		if *at != s {
			return fmt.Errorf("a cable from %s to %s; want one to input link %d of stage %d, which is on another switch",
				f.PortName(from), f.PortName(to), link, stage)
		}
		return nil
	}
	for a, p := range w.Outputs {
		if err := join(p, w.Stages-1, Shuffle(w.Stages, a)); err != nil {
			return err
		}
	}
	for stage := w.Stages - 1; stage >= 0; stage-- {
		for link := range w.Size() {
			p := f.Port(w.Element(stage, link/2), fabric.PortNum(outputPort+link%2))
			if stage > 0 {
				if err := join(p, stage-1, Butterfly(stage, link)); err != nil {
					return err
				}
				continue
			}
			q := f.Peer(p)
			if f.IsSwitch(f.Owner(q)) {
				return fmt.Errorf("a cable from %s to %s; want one to a processor", f.PortName(p), f.PortName(q))
			}
			if err := w.assignAddress(w.Inputs, link, q); err != nil {
				return err
			}
		}
	}
	return nil
}

// Group returns the multicast group of the processors with these addresses, each given
// once in any order. All processors may send to it.
func (w *Network) Group(name string, addresses ...int) mft.Group {
	g := mft.Group{Name: name, Senders: slices.Sorted(slices.Values(w.Outputs))}
	g.Receivers = text.Each(addresses, func(a int) fabric.PortID { return w.Inputs[a] })
	slices.Sort(g.Receivers)
	return g
}
