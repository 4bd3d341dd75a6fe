package dump

import (
	"bytes"
	"io"
	"slices"
	"strconv"

	"github.com/klauspost/compress/zstd"

	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/state"
)

// Form is a form of text that ibweave reads and recognizes by its content.
type Form uint8

// The forms, by the file or the tool that has them.
const (
	Unknown       Form = iota
	Database           // db_csv of ibdiagnet, which package ibdiagnet reads
	NetDiscover        // ibnetdiscover, which package topology reads, like the next five
	SubnetList         // opensm-subnet.lst, ibdiagnet's lst
	PortList           // ibnetdiscover -p
	LinkInfo           // iblinkinfo
	NetDump            // ibdiagnet's net_dump
	UFMLinks           // links of UFM
	LFTs               // opensm-lfts.dump
	IBRoute            // ibroute, dump_fts, dump_lfts
	FDBs               // opensm.fdbs, ibdiagnet's fdbs
	FAR                // ibdiagnet's far
	PLFTMap            // which private LFT a packet takes
	SL2VL              // opensm-sl2vl.dump
	SMPQuerySL2VL      // smpquery sl2vl
	PathSLs            // what WritePathSLs writes
	IBDMPathSLs        // ibdmchk -c
	MCFDBs             // opensm.mcfdbs
	MFTs               // ibroute -M, dump_mfts
	SAQuery            // saquery -m, -g, MCMR
	PKeyRecords        // saquery PKTR
	SMPQueryPKeys      // smpquery pkeys, with the ports
	NodeList           // ibswitches, ibhosts, ibrouters, ibnodes; names, which package topology reads
	LIDMatrix          // opensm-lid-matrix.dump
	GUID2LID           // OpenSM's guid2lid cache
	PerfQuery          // perfquery, one port after the other
	QueryErrors        // ibqueryerrors
	Cables             // ibdiagnet's cables
	formCount
)

// HelpsOpenSM is the kind of forms that only OpenSM reads, and no command of ibweave.
const HelpsOpenSM state.Part = "none"

// Info describes a format.
type Info struct {
	Name  string // the file or the tool
	Kind  state.Part
	From  string // who writes or prints it
	Lacks string // facts about its Kind that it does not have; "" for none
}

// lacksOfLists names the facts that all lists of ports and links lack.
const lacksOfLists = "system GUIDs, vendors, devices, LMC, kind of port 0, adapters without a cable; GUIDs of adapters are those of their ports less the port number"

// infos is the table of formats, by Form; of each kind, those with the most facts come first.
var infos = [formCount]Info{
	Unknown:       {Name: "unknown text"},
	Database:      {"ibdiagnet's db_csv", state.Topology, "ibdiagnet", ""},
	NetDiscover:   {"ibnetdiscover text", state.Topology, "ibnetdiscover, ibdiagnet, `ibweave compile`, `discover` and `gen`", "labels of ports, unless ibdiagnet wrote it"},
	SubnetList:    {"opensm-subnet.lst", state.Topology, "OpenSM, and ibdiagnet as lst", "LMC, kind of port 0, labels, nodes without a cable"},
	PortList:      {"ports of ibnetdiscover -p", state.Topology, "`ibnetdiscover -p`", lacksOfLists + "; an adapter has no more ports than are listed"},
	LinkInfo:      {"iblinkinfo text", state.Topology, "`iblinkinfo`, also with -l and --switches-only", lacksOfLists + "; with -l the types of nodes, so that a node with several ports under one GUID is a switch, and routers are taken for adapters; without -l two nodes with the same description, LID and port number cannot be told apart, and of switches only GUIDs of adapters are made up"},
	NetDump:       {"ibdiagnet's net_dump", state.Topology, "ibdiagnet", "system GUIDs, vendors, devices, LMC, kind of port 0, nodes without a cable to a switch; the GUID of an adapter is taken for that of its node, and routers are taken for adapters"},
	UFMLinks:      {"links of UFM", state.Topology, "UFM, for `/ufmRest/resources/links`", lacksOfLists + "; LIDs, speeds, ports above the highest one with a cable; routers are taken for adapters"},
	LFTs:          {"opensm-lfts.dump", state.ForwardingTables, "OpenSM", "rows without a path"},
	IBRoute:       {"ibroute or dump_lfts text", state.ForwardingTables, "`dump_lfts`, `dump_fts`, `ibroute`", ""},
	FDBs:          {"opensm.fdbs", state.ForwardingTables, "OpenSM, ibdiagnet", "owners of LIDs"},
	FAR:           {"ibdiagnet's far", state.AdaptiveTables, "ibdiagnet, `ibweave compile --adaptive`", "the PLFT that a packet takes; what of its settings is not public"},
	PLFTMap:       {"PLFTs by input port and SL", state.PLFTChoice, "people, or a script; the form of ibdiagnet's plft is not public", ""},
	SL2VL:         {"opensm-sl2vl.dump", state.SL2VLTables, "OpenSM", ""},
	SMPQuerySL2VL: {"smpquery sl2vl text", state.SL2VLTables, "`smpquery sl2vl`", ""},
	PathSLs:       {"path SLs by switch and DLID", state.SLsOfPaths, "`ibweave compile`", ""},
	IBDMPathSLs:   {"ibdmchk's path SLs", state.SLsOfPaths, "ibutils, for `ibdmchk -c`; `ibweave compile`", ""},
	MCFDBs:        {"opensm.mcfdbs", state.MulticastTables, "OpenSM, ibdiagnet", ""},
	MFTs:          {"dump_mfts text", state.MulticastTables, "`dump_mfts`, `ibroute -M`", "masks beyond the MLIDs that are asked for"},
	SAQuery:       {"saquery's multicast groups", state.Groups, "`saquery -m`, `-g`, `MCMR`", ""},
	PKeyRecords:   {"saquery's P_Key tables", state.PKeyTables, "`saquery --smkey 1 PKTR`, `ibweave pull`", ""},
	SMPQueryPKeys: {"smpquery pkeys text", state.PKeyTables, "`smpquery pkeys`, with the port of each table in a line before it, like Lid 5", ""},
	NodeList:      {"names of ibswitches or ibhosts", state.Names, "`ibswitches`, `ibhosts`, `ibrouters`, `ibnodes`", "cables; --node-name-map takes it"},
	PerfQuery:     {"perfquery text", state.PortCounters, "`perfquery`, also with -x; `counters` takes PM_INFO of db_csv as well", "with -x PortXmitWait and errors, where ports have none of 64 bits"},
	QueryErrors:   {"ibqueryerrors text", state.PortCounters, "`ibqueryerrors`, also with -r, --data, --details and --counters", "ports without errors; with its thresholds, fewer errors"},
	Cables:        {"ibdiagnet's cables", state.PortCounters, "ibdiagnet --get_cable_info", "counters: it has temperatures and light of modules, and is read besides a form that has them"},
	LIDMatrix:     {"opensm-lid-matrix.dump", HelpsOpenSM, "OpenSM, `ibweave compile`", ""},
	GUID2LID:      {"guid2lid", HelpsOpenSM, "OpenSM, `ibweave compile`", ""},
}

// Info returns the row of the form in the table.
func (f Form) Info() Info {
	if f < formCount {
		return infos[f]
	}
	return Info{Name: "form " + strconv.Itoa(int(f))}
}

// String returns the name of the file, or of the tool that prints the form.
func (f Form) String() string { return f.Info().Name }

// Forms lists the formats of a kind, those with the most facts first.
func Forms(kind state.Part) (list []Form) {
	for f := range formCount {
		if infos[f].Kind == kind {
			list = append(list, f)
		}
	}
	return list
}

// Kinds lists the kinds in the order of the table.
func Kinds() (list []state.Part) {
	for f := range formCount {
		if k := infos[f].Kind; k != "" && !slices.Contains(list, k) {
			list = append(list, k)
		}
	}
	return list
}

// recognizeWithin is how far into a text Recognize looks for
// marks behind the first line, in bytes.
const recognizeWithin = 64 << 10

// Recognize returns the form of a (decompressed) text; data is the text or its
// beginning. It tells the form by the first line with content, except that a
// topology may follow foreign lines, and that sections of db_csv may begin anywhere.
func Recognize(data []byte) Form {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if first := recognizeFirst(data); first != Unknown {
		return first
	}
	for line := range bytes.Lines(topology.Plain(data[:min(len(data), recognizeWithin)])) {
		if _, ok := SectionMark(bytes.TrimSpace(line), "START_"); ok {
			return Database
		}
		if beginsWith(line, errorsCheck) { // in a fabric without errors
			return QueryErrors
		}
	}
	return ofTopology[topology.Recognize(data)]
}

// ofTopology has the form for each form that package topology recognizes.
var ofTopology = [...]Form{
	topology.NoForm: Unknown, topology.Stanzas: NetDiscover, topology.PortList: PortList, topology.LinkInfo: LinkInfo,
	topology.SubnetList: SubnetList, topology.UFMLinks: UFMLinks, topology.NetDump: NetDump, topology.NodeList: NodeList,
}

// SectionMark reads a line that begins (START_) or ends (END_) a section of db_csv, and returns
// the name of the section.
func SectionMark(line []byte, mark string) (name string, ok bool) {
	if !beginsWith(line, mark) {
		return "", false
	}
	word := bytes.TrimRight(line[len(mark):], " \t")
	ok = len(word) > 0 && len(bytes.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")) == 0
	return string(word), ok
}

// recognizeFirst returns the form that the first line with content shows.
func recognizeFirst(data []byte) Form {
	for at := 0; at < len(data); {
		var line []byte
		line, at = cutLine(data, at)
		line = bytes.TrimRight(line, " \t\r")
		if isSilent(line) || bytes.HasPrefix(line, libraryWarning) {
			continue
		}
		next, _ := cutLine(data, at)
		next = bytes.TrimSpace(next)
		if beginsWith(line, mcfdbsSwitch) && !beginsWith(next, "LID ") && bytes.Contains(data[at-1:min(len(data), at+recognizeWithin)], []byte("\n"+farGroups)) {
			return FAR
		}
		return formOf(line, next)
	}
	return Unknown
}

// formOf returns the form of a text that begins with line;
// some forms also need the next line.
func formOf(line, next []byte) Form {
	switch {
	case beginsWith(line, unicastLIDs):
		if _, limits, found := bytes.Cut(line, []byte("[")); found && beginsWith(limits, "0x") {
			return IBRoute
		}
		return LFTs
	case beginsWith(line, "Multicast mlids"):
		return MFTs
	case fdbsHeader(line) > 0:
		return FDBs
	case beginsWith(line, plftsOf):
		return PLFTMap
	case beginsWith(line, "Switch: guid 0x"):
		return LIDMatrix
	case topology.Recognize(line) == topology.SubnetList:
		return SubnetList
	case beginsWith(line, pathHead):
		return PathSLs
	case bytes.Contains(line, []byte(baseLID)):
		return SL2VL
	case beginsWith(line, perfSelect):
		return PerfQuery
	case beginsWith(line, errorsFor), beginsWith(line, dataFor):
		return QueryErrors
	case beginsWith(line, "---") && beginsWith(next, cablePort):
		return Cables
	case beginsWith(line, portsIn):
		return SMPQuerySL2VL
	case beginsWith(line, mcfdbsSwitch):
		return MCFDBs
	case neededFields(line) != nil:
		return SAQuery
	case bytes.HasPrefix(line, pkeyRecord):
		return PKeyRecords
	case isPKeyHead(line, next):
		return SMPQueryPKeys
	}
	if _, err := parseGUID2LID(line); err == nil {
		return GUID2LID
	}
	if _, _, _, ok := parsePair(line); ok {
		return IBDMPathSLs
	}
	return Unknown
}

// WriteZstd writes the output of write as one frame of zstd. The bytes depend
// only on that output. Errors are those of write and of w.
func WriteZstd(w io.Writer, write func(io.Writer) error) error {
	// Dumps repeat themselves so much that a small window is the best one.
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2))
	if err != nil {
		return err
	}
	if err := write(z); err != nil {
		_ = z.Close() // the frame is of no use
		return err
	}
	return z.Close()
}
