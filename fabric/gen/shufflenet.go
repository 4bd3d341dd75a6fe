package gen

import (
	"fmt"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
)

// Myrinet4 makes a network of the size that Gerla, Palnati and Walton measured in
// section 8 of their paper: four
// 8-port switches and eight hosts. The paper does not say how its switches
// were cabled. Here they are a ring, the smallest network in which free
// routing can deadlock: port 1 leads to the next switch, port 2 to the
// previous one, and hosts 2s and 2s+1 are on ports 3 and 4 of switch s.
func Myrinet4() (*fabric.Fabric, error) {
	const switches, hostsEach, ports = 4, 2, 8
	p, err := NewPlan(switches, switches*hostsEach)
	if err != nil {
		return nil, err
	}
	for s := range switches {
		p.Switch(ports, "switch "+strconv.Itoa(s))
	}
	for s := range switches {
		p.Cable(s, 1, (s+1)%switches, 2)
	}
	for h := range switches * hostsEach {
		p.Cable(p.CA(1, "host "+strconv.Itoa(h)), 1, h/hostsEach, 3+h%hostsEach)
	}
	return p.Fabric()
}

// Shufflenet makes a bidirectional (p, k) shufflenet with a host on every
// switch: k columns of p**k switches each, k 2 or more. Switch c,r (column,
// row) has cables to the p switches (c+1)%k, (r*p + j)%p**k for j from 0 to
// p-1. (2, 3) is the 24-node network of the paper's section 7.1.
//
// Ports, from 1: j+1 leads to the j-th switch of the next column; p+1+i to
// the i-th, by row, of those that lead here from the previous column; 2p+1 to
// the host. With two columns a pair of switches can have two cables, one in
// each direction. Switches are numbered column by column, and described as
// "switch c,r" and "host c,r".
func Shufflenet(p, k int) (*fabric.Fabric, error) {
	if most := (int(fabric.MaxPortNum) - 1) / 2; p < 2 || p > most {
		return nil, fmt.Errorf("shufflenet of p %d: want 2 to %d", p, most)
	}
	if k < 2 {
		return nil, fmt.Errorf("shufflenet of %d columns: want 2 or more", k)
	}
	rows := 1
	for range k {
		rows *= p
		if most := int(fabric.MaxUnicastLID); k > most/2/rows {
			return nil, fmt.Errorf("shufflenet of p %d and %d columns: want at most %d switches and hosts together: %w", p, k, most, fabric.ErrTooLarge)
		}
	}
	plan, err := NewPlan(k*rows, k*rows)
	if err != nil {
		return nil, fmt.Errorf("shufflenet of p %d and %d columns: %w", p, k, err)
	}
	names := make([]string, 0, k*rows)
	for c := range k {
		for r := range rows {
			names = append(names, strconv.Itoa(c)+","+strconv.Itoa(r))
			plan.Switch(2*p+1, "switch "+names[len(names)-1])
		}
	}
	for c := range k {
		for r := range rows {
			for j := range p {
				next := (c+1)%k*rows + (r*p+j)%rows
				plan.Cable(c*rows+r, j+1, next, p+1+r/(rows/p))
			}
		}
	}
	for i, name := range names {
		plan.Cable(plan.CA(1, "host "+name), 1, i, 2*p+1)
	}
	return plan.Fabric()
}
