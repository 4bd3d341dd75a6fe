// Package banyan is for banyan multistage interconnection networks (MINs), those of the
// paper on recursive multicast in wrap-around MINs: it generates the fabric (Banyan),
// recognizes it (Detect), and makes forwarding tables (Engine) and multicast forwarding
// tables (RegionTree). It makes no promise to other modules.
//
// A network has n stages, numbered from n-1, the first, to 0, and N = 1<<n processors or
// nodes. These and the links of each stage are numbered from 0, from the top.
package banyan

import (
	"fmt"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
)

// The ports of a switching element: input link a of a stage is on port 1 + a%2 of element
// a/2, output link a on port 3 + a%2.
const (
	elementPorts = 4
	inputPort    = 1
	outputPort   = 3
)

// MaxStages is the greatest number of stages for which there are enough LIDs: 4,096
// processors with two ports each and 24,576 switching elements.
const MaxStages = 12

// Banyan makes the network of n stages for N = 1<<n processors. Each stage has N/2
// switching elements of 2x2.
//
// Processor a's output goes to the first stage's input link Shuffle(n, a), output link a
// of stage i to input link Butterfly(i, a) of stage i-1, and output link a of stage 0 to
// the input of processor a.
//
// With wrapAround a processor is one channel adapter, "host 5", with its output on port 1
// and its input on port 2, so that it can forward what it received. Otherwise it is two
// with one port each, "source 5" and "sink 5".
//
// Elements are numbered from the first stage and from the top, and described as "stage 2
// element 3". The network passes packets in one direction only, but InfiniBand cables work
// in both: the forwarding tables ensure that no packet goes back.
func Banyan(stages int, wrapAround bool) (*fabric.Fabric, error) {
	if stages < 1 || stages > MaxStages {
		return nil, fmt.Errorf("banyan network of %d stages: want 1 to %d", stages, MaxStages)
	}
	n := 1 << stages
	p, err := gen.NewPlan(stages*n/2, 2*n)
	if err != nil {
		return nil, fmt.Errorf("banyan network of %d stages: %w", stages, err)
	}
	for stage := stages - 1; stage >= 0; stage-- {
		for e := range n / 2 {
			p.Switch(elementPorts, "stage "+strconv.Itoa(stage)+" element "+strconv.Itoa(e))
		}
	}
	element := func(stage, link int) int { return (stages-1-stage)*n/2 + link/2 }
	for stage := stages - 1; stage > 0; stage-- {
		for a := range n {
			b := Butterfly(stage, a)
			p.Cable(element(stage, a), outputPort+a%2, element(stage-1, b), inputPort+b%2)
		}
	}
	outputs := make([]int, n) // the node that processor a sends from
	inputs := make([]int, n)  // the node that it receives at
	receivePort := 1
	for a := range n {
		if wrapAround {
			outputs[a] = p.CA(2, "host "+strconv.Itoa(a))
		} else {
			outputs[a] = p.CA(1, "source "+strconv.Itoa(a))
		}
	}
	if wrapAround {
		copy(inputs, outputs)
		receivePort = 2
	} else {
		for a := range n {
			inputs[a] = p.CA(1, "sink "+strconv.Itoa(a))
		}
	}
	for a := range n {
		b := Shuffle(stages, a)
		p.Cable(outputs[a], 1, element(stages-1, b), inputPort+b%2)
		p.Cable(inputs[a], receivePort, element(0, a), outputPort+a%2)
	}
	return p.Fabric()
}

// Shuffle is the perfect shuffle of n-bit link numbers: the highest bit moves to the
// lowest place (Definition 1 of the paper, IC_n).
func Shuffle(n, a int) int { return (a<<1 | a>>(n-1)) & (1<<n - 1) }

// Butterfly swaps bits i and 0 of a link number (Definition 1, IC_i).
func Butterfly(i, a int) int {
	flip := (a>>i ^ a) & 1
	return a ^ (flip<<i | flip)
}
