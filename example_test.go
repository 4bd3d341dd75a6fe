package ibweave_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/ibweave/ibweave"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify"
)

const (
	capture = "examples/fattree-two-level/fabric.ibnetdiscover"
	list    = "examples/audit/opensm-subnet.lst"
	dumped  = "examples/audit/opensm-lfts.dump"
)

// A capture is what ibnetdiscover printed.
func ExampleReadFabric() {
	f, err := ibweave.ReadFabric(capture)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.NumSwitches(), "switches,", len(f.CAPorts()), "CA ports,", f.NumLinks(), "links")
	_, err = ibweave.ParseFabric("typed.txt", []byte("Switch\t3 \"S-0000000000200000\"\n[1]\tnowhere\n"))
	fmt.Println(err)
	// Output:
	// 12 switches, 32 CA ports, 63 links
	// typed.txt:2:4: want the id of the node at the other end in quotes, such as "S-0002c90000000001"
	//     [1]	nowhere
}

func ExampleCompile() {
	f, err := ibweave.ReadFabric(capture)
	if err != nil {
		log.Fatal(err)
	}
	r, err := ibweave.Compile(context.Background(), f, "updn", compile.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Verify.Verdict, "with", r.Verify.Balance.MaxRoutes, "routes on the most loaded link")
	// Output:
	// clean with 40 routes on the most loaded link
}

// Tables of any origin are verified: these are OpenSM's.
func ExampleVerify() {
	s, err := ibweave.OpenFiles(context.Background(), ibweave.Files{Topology: list, LFTs: dumped})
	if err != nil {
		log.Fatal(err)
	}
	r, err := ibweave.Verify(context.Background(), s, verify.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Verdict, "with", r.CreditLoops.Count, "credit loops, such as")
	for _, hop := range r.CreditLoops.Cycles[0] {
		fmt.Println(hop)
	}
	// Output:
	// errors with 2 credit loops, such as
	// "switch 0,0"[1]
	// "switch 1,0"[1]
	// "switch 2,0"[1]
	// "switch 3,0"[1]
	// "switch 4,0"[1]
	// "switch 5,0"[1]
}

// A folder of dumps has forwarding tables, lanes and multicast tables under any names.
func ExampleOpen() {
	s, err := ibweave.Open(context.Background(), "testdata/ring")
	if err != nil {
		log.Fatal(err)
	}
	for _, x := range s.Sources {
		fmt.Println(x.Part, "from", filepath.Base(x.File))
	}
	r, err := ibweave.Verify(context.Background(), s, verify.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Verdict, "with", r.CreditLoops.Count, "credit loops on", r.CreditLoops.VLs, "VLs and", r.Multicast.Pairs, "pairs of multicast")
	hosts := s.Fabric.CAPorts()
	path, err := ibweave.Path(s.Fabric, s.Tables, hosts[0], hosts[2])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(path), "cables, the last from", s.Fabric.PortName(path[len(path)-1]))
	var sarif bytes.Buffer
	if err := ibweave.WriteSARIF(&sarif, s, r); err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Contains(sarif.String(), "2.1.0"))
	// Output:
	// topology from fabric.ibnetdiscover
	// forwarding tables from opensm.fdbs
	// SL-to-VL tables from opensm-sl2vl.dump
	// path SLs from path-sls.dump
	// multicast tables from opensm.mcfdbs
	// clean with 0 credit loops on 2 VLs and 30 pairs of multicast
	// 4 cables, the last from "switch 2"[5]
	// true
}

func ExampleWrite() {
	f, err := ibweave.ReadFabric(capture)
	if err != nil {
		log.Fatal(err)
	}
	r, err := ibweave.Compile(context.Background(), f, "minhop", compile.Options{})
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "ibweave-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if r.Verify.Fails(verify.Error) {
		log.Fatal(r.Verify.Verdict)
	}
	names, err := ibweave.Write(context.Background(), filepath.Join(dir, "tables"), r, ibweave.WriteOptions{InstallDir: "/etc/opensm/ibweave"})
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range names {
		fmt.Println(name)
	}
	// Output:
	// certificate.txt
	// fabric.ibnetdiscover
	// guid2lid
	// ibweave.yaml
	// manifest.json
	// opensm-lfts.dump
	// opensm-lid-matrix.dump
	// opensm-plugin.conf
	// opensm-subnet.lst
	// opensm.conf
	// opensm.fdbs
}

func ExamplePath() {
	s, err := ibweave.OpenFiles(context.Background(), ibweave.Files{Topology: list, LFTs: dumped})
	if err != nil {
		log.Fatal(err)
	}
	f := s.Fabric
	hosts := f.CAPorts()
	hops, err := ibweave.Path(f, s.Tables, hosts[0], hosts[len(hosts)-1])
	if err != nil {
		log.Fatal(err)
	}
	for _, out := range hops {
		fmt.Println(f.PortName(out), "to", f.PortName(f.Peer(out)))
	}
	hops, err = ibweave.Path(f, lft.NewTables(f.NumSwitches(), f.MaxLID()), hosts[0], hosts[1])
	fmt.Println(len(hops), err)
	// Output:
	// "host 0,0"[1] to "switch 0,0"[5]
	// "switch 0,0"[3] to "switch 5,0"[1]
	// "switch 5,0"[5] to "host 5,0"[1]
	// 1 "switch 0,0" has no entry for LID 5
}
