package reproduce

import "slices"

// zhou2010 is the journal version of the mesh paper, with figures 10 to 27 (X21).
var zhou2010 = Paper{
	ID: "zhou2010",
	Title: "Zhou, Liu, Chung: A hardware supported multicast scheme based on XY routing for 2-D mesh InfiniBand networks, " +
		"J. Supercomputing, 2010",
	Notes: []string{
		"The axes of the figures have no numbers in the text at hand, so claims are compared and not values.",
		"Figures 22 to 24 are captioned with a group of 100 %; the text says 40 %, which is taken.",
	},
	Experiments: slices.Concat(meshExperiments(journalCases), meshSensitivity()),
	Exhibits:    zhouExhibits,
	Claims:      slices.Concat(claimsOf(zhouRows...), meshClaims(journalCases, false), sensitivityClaims()),
	Ours:        []string{"X13", "X19", "X19 order"},
}

var journalCases = []meshCase{
	{"one-source multicast", "group: 40 %", 1, meshPart, [3]string{"fig10", "fig11", "fig12"}},
	{"one-source multicast", "group: 100 %", 1, meshHosts, [3]string{"fig13", "fig14", "fig15"}},
	{"multi-source multicast", "sources: 40 %, group: 40 %", meshPart, meshPart, [3]string{"fig16", "fig17", "fig18"}},
	{"multi-source multicast", "sources: 40 %, group: 100 %", meshPart, meshHosts, [3]string{"fig19", "fig20", "fig21"}},
	{"all-source multicast", "sources: 100 %, group: 40 %", meshHosts, meshPart, [3]string{"fig22", "fig23", "fig24"}},
	{"all-source multicast", "sources: 100 %, group: 100 %", meshHosts, meshHosts, [3]string{"fig25", "fig26", "fig27"}},
}

// zhouConference is the conference version of the mesh paper, with figures 8 to 16
// (X21). Its cases are among those of the journal version.
var zhouConference = Paper{
	ID:    "zhou-conf",
	Title: "Zhou, Liu, Chung: Hardware supported multicast in 2-D mesh InfiniBand networks (conference version of zhou2010)",
	Notes: []string{
		"The paper gives no data rate; that of the journal version is taken.",
		"Only the 40 % of sources have the group of 40 %, so groups and sources of more than one change together.",
	},
	Experiments: meshExperiments(conferenceCases),
	Exhibits:    zhouConferenceExhibits,
	Claims:      slices.Concat(conferenceExhibitClaims(), meshClaims(conferenceCases, true)),
}

var conferenceCases = []meshCase{
	{"one-source multicast", "group: 100 %", 1, meshHosts, [3]string{"fig8", "fig9", "fig10"}},
	{"multi-source multicast", "sources: 40 %, group: 40 %", meshPart, meshPart, [3]string{"fig11", "fig12", "fig13"}},
	{"all-source multicast", "sources: 100 %, group: 100 %", meshHosts, meshHosts, [3]string{"fig14", "fig15", "fig16"}},
}
