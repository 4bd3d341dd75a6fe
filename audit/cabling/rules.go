package cabling

import (
	_ "embed"
	"slices"

	"github.com/ibweave/ibweave/audit/rails"
	"github.com/ibweave/ibweave/verify"
)

// The names of the rules.
const (
	SplitFabric       = "split-fabric"
	MissingSwitch     = "missing-switch"
	MissingNode       = "missing-node"
	MissingCable      = "missing-cable"
	MovedCable        = "moved-cable"
	CrossedCables     = "crossed-cables"
	SwappedHosts      = "swapped-hosts"
	ExtraCable        = "extra-cable"
	ExtraNode         = "extra-node"
	ReplacedNode      = "replaced-node"
	WrongShape        = "wrong-shape"
	LinkBelowRequired = "link-below-required"
	LinkDegraded      = "link-degraded"
	DuplicateGUID     = "duplicate-guid"
	DuplicateName     = "duplicate-description"
	IsolatedNode      = "isolated-node"
	PortDown          = "port-down"
	HostOnSpine       = "host-on-spine"
	UnevenUplinks     = "uneven-uplinks"

	UnevenPlanes       = "uneven-planes"
	MissingAggregation = "missing-aggregation-node"
)

// Rules lists the rules about cables and nodes, then those about rails, each the gravest first.
var Rules = slices.Concat(verify.ParseRules(ruleTexts), rails.Rules)

//go:embed rules.txt
var ruleTexts string
