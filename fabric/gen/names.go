package gen

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// made is the parsed description of a made switch: "chip 1 leaf 3
// pod 2" has chip 1, the words leaf and pod, and their numbers.
type made struct {
	chip  int // -1 if the switch has one chip
	words []string
	nums  []string // "3", or "3,1" of coordinates
}

func parseMade(description string) made {
	m := made{chip: -1}
	fields := strings.Fields(description)
	for i := 0; i+1 < len(fields); i += 2 {
		if k, err := strconv.Atoi(fields[i+1]); err == nil && fields[i] == "chip" {
			m.chip = k
			continue
		}
		m.words, m.nums = append(m.words, fields[i]), append(m.nums, fields[i+1])
	}
	return m
}

// label labels all ports.
func (p *Plan) label() {
	for i := range p.nodes {
		n, cages := &p.nodes[i], p.hardware(i).speed >= fabric.NDR
		chip := max(parseMade(n.Description).chip, 0) + 1
		slot, _ := adapterOf(n.Description)
		for port := fabric.PortNum(1); port <= n.NumPorts; port++ {
			label := fmt.Sprintf("B%dD0F0/0/0/%d", (16+24*slot)%256, port)
			if n.Type == fabric.Switch {
				label = switchLabel(int(port), chip, cages)
			}
			p.labels[end{i, port}] = label
		}
	}
}

// switchLabel returns the label of a port of a switch.
// cages is true from NDR on, where a cage has two ports.
func switchLabel(port, chip int, cages bool) string {
	if !cages {
		return strconv.Itoa(port)
	}
	return fmt.Sprintf("%d/%d/%d", chip, (port+1)/2, 2-port%2)
}

// hardware returns the hardware of a switch or an adapter, found by its device ID.
func (p *Plan) hardware(node int) *hardware {
	for i := range generations {
		if h := &generations[i]; p.nodes[node].DeviceID == h.switchID || p.nodes[node].DeviceID == h.caID {
			return h
		}
	}
	return &generations[0]
}

// rename gives all nodes names in a style. In style mixed, one node in eight has
// a name as delivered, and one adapter in eight has an older form of its number.
func (p *Plan) rename(style string, seed uint64) error {
	if !slices.Contains(Styles, style) {
		return fmt.Errorf("names in style %q: want %s", style, strings.Join(Styles, ", "))
	}
	random := rand.New(rand.NewPCG(seed, 3))
	hosts := map[string]int{} // by name: its number
	for i := range p.nodes {
		n, h := &p.nodes[i], p.hardware(i)
		form := 0
		switch style {
		case "factory":
			form = 1
		case "mixed":
			form = random.IntN(8)
		}
		switch {
		case p.isSwitch(i) && form == 1:
			n.Description = h.chip + " Mellanox Technologies"
		case p.isSwitch(i):
			n.Description = siteSwitch(n.Description, h)
		case form == 1:
			siteAdapter(n.Description, hosts, false) // the host keeps its number
			n.Description = fmt.Sprintf("MT%d %s   Mellanox Technologies", h.caID, h.adapter)
		default:
			n.Description = siteAdapter(n.Description, hosts, form == 2)
		}
	}
	return nil
}

// Styles are the values of Options.Names.
var Styles = []string{"site", "factory", "mixed"}

// siteSwitch returns a managed switch's name: MF0;pod02-leaf03:MQM9700/U1. A director's
// chip has its card, MF0;director01:MCS8500/L04/U2; two line chips are on one card.
func siteSwitch(description string, h *hardware) string {
	m := parseMade(description)
	unit := max(m.chip, 0) + 1
	number := func(i int) string {
		n, err := strconv.Atoi(m.nums[i])
		if err != nil {
			return strings.ReplaceAll(m.nums[i], ",", "-")
		}
		return fmt.Sprintf("%02d", n)
	}
	if len(m.words) == 2 && m.words[1] == "director" {
		card, _ := strconv.Atoi(m.nums[0])
		if m.words[0] == "line" && m.chip < 0 {
			card, unit = card/2, card%2+1
		}
		return fmt.Sprintf("MF0;director%s:%s/%s%02d/U%d", number(1), h.director, strings.ToUpper(m.words[0][:1]), card+1, unit)
	}
	var parts []string
	for i := range slices.Backward(m.words) {
		parts = append(parts, m.words[i]+number(i))
	}
	return fmt.Sprintf("MF0;%s:%s/U%d", strings.Join(parts, "-"), h.model, unit)
}

// siteAdapter returns the name of an adapter: node0012 mlx5_3, or node0012
// HCA-4. Hosts are numbered from 1, those for storage separately.
func siteAdapter(description string, numbers map[string]int, hca bool) string {
	n, host := adapterOf(description)
	role := "node"
	if strings.HasPrefix(host, "service ") {
		role = "storage"
	}
	if numbers[host] == 0 {
		numbers[role]++
		numbers[host] = numbers[role]
	}
	name := fmt.Sprintf("%s%04d", role, numbers[host])
	if hca {
		return name + " HCA-" + strconv.Itoa(n+1)
	}
	return name + " mlx5_" + strconv.Itoa(n)
}
