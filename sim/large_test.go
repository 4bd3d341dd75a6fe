package sim

import (
	"flag"
	"runtime"
	"testing"

	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
)

var radix = flag.Int("radix", 8, "ports of the switches of TestFatTree's fabric, which has radix^3/4 end ports: 36 has 11,664")

// TestFatTree has all end ports of a fat tree send packets of 2048 bytes uniformly at
// half load, with 4 VLs, and prints the memory that Go took from the system: less than 4 GB.
func TestFatTree(t *testing.T) {
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: *radix, Levels: 3}))(t)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
	r := short.Must(lft.Minhop{}.Route(t.Context(), f, lft.Options{}))(t)
	cfg := oldLinks()
	cfg.Mbps = 32_000
	cfg.PacketBuffers(4, 2048)
	m := short.Must(Measure(t.Context(), Network{State: state.State{Fabric: f, Tables: r.Tables, SL2VL: lft.NewSL2VL(f, lft.IdentityVLs(4))}}, cfg,
		Traffic{Load: 0.5, Bytes: 2048, SLs: 4, Seed: 1}, Stop{WarmUp: 20 * Microsecond, MaxTime: 60 * Microsecond}))(t)
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	t.Logf("%d end ports, %d switches, %d packets, %.2f of load accepted, latency %.0f ns; %d MB taken from the system",
		len(f.CAPorts()), f.NumSwitches(), m.Counts.Packets, m.Accepted, m.All.Mean()/1000, memory.Sys>>20)
	if m.Accepted < 0.4 || m.Counts.Dropped+m.Counts.Strayed != 0 || memory.Sys >= 4<<30 {
		t.Errorf("%g accepted, %+v, %d bytes", m.Accepted, m.Counts, memory.Sys)
	}
}
