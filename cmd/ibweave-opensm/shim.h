/*
 * What the C half of the plugin and the Go half know of each other. All values
 * are in host byte order.
 */
#ifndef IBWEAVE_SHIM_H
#define IBWEAVE_SHIM_H

#include <stddef.h>
#include <stdint.h>

struct osm_opensm;

struct ibw_node {
	uint64_t address;	/* of OpenSM's node */
	uint64_t guid;
	uint64_t system_guid;
	uint32_t vendor_id;
	int32_t first;		/* index of port 0 in ports */
	uint16_t device_id;
	uint16_t linear_cap;
	uint8_t type;
	uint8_t num_ports;
	uint8_t enhanced_port0;
	char description[65];	/* ends with a zero */
};

struct ibw_port {
	uint64_t guid;
	uint64_t remote;	/* the address of OpenSM's port at the other end, 0 for none */
	int32_t peer;		/* index of a node, -1 for none */
	uint16_t lid;
	uint8_t lmc;
	uint8_t num;		/* of the peer's port */
	uint8_t vl_cap;		/* as PortInfo codes it */
	uint8_t op_vls;		/* likewise */
	uint8_t width;		/* as PortInfo codes it */
	uint8_t speed;		/* likewise; extended and FDR10 below */
	uint8_t speed_ext;
	uint8_t fdr10;
	uint8_t sick;
};

struct ibw_settings {
	uint8_t qos;
	uint8_t ucast_cache;
	uint8_t dumps;
	uint8_t max_op_vls;	/* as PortInfo codes VLs */
};

/* What a snapshot has besides nodes and ports. */
struct ibw_snapshot {
	int32_t num_nodes;
	int32_t num_ports;
	uint16_t max_lid;
	struct ibw_settings settings;
};

/* A place in a table of nodes by address. */
struct ibw_place {
	uint64_t address;	/* of OpenSM's node, 0 for a free place */
	int32_t node;		/* its index */
};

struct ibw_member {
	uint64_t port_guid;
	uint8_t state;
};

struct ibw_group {
	uint8_t mgid[16];
	int32_t first;		/* index in members */
	int32_t num_members;
	uint16_t mlid;
	uint8_t sl;
};

struct ibw_groups {
	struct ibw_group *groups;	/* those of one MLID side by side */
	struct ibw_member *members;
	int32_t num_groups;
	int32_t num_members;
	int32_t room_groups;
	int32_t room_members;
};

/* A port in a mask. */
struct ibw_switch_port {
	uint64_t guid;
	uint8_t port;
};

/* Which callbacks an engine is to have. */
struct ibw_wants {
	uint8_t sl2vl;
	uint8_t vlarb;
	uint8_t path_sl;
};

/* Why Go's runtime was not started, NULL when it was (limits.c). */
const char *ibw_refusal(void);

/* C, for Go. */
size_t ibw_num_nodes(const struct osm_opensm *osm);
size_t ibw_num_switches(const struct osm_opensm *osm);
int ibw_snapshot_take(const struct osm_opensm *osm, struct ibw_snapshot *s, struct ibw_node *nodes, int32_t room_nodes,
		      struct ibw_port *ports, int32_t room_ports, struct ibw_place *places, size_t num_places);
void ibw_log(struct osm_opensm *osm, int level, const char *line);
void ibw_sweep(struct osm_opensm *osm);
int ibw_groups_all(struct osm_opensm *osm, struct ibw_groups *g);
void ibw_groups_free(struct ibw_groups *g);
void ibw_set_masks(struct osm_opensm *osm, uint16_t mlid, const struct ibw_switch_port *ports, int32_t n);
int ibw_found_lft(struct osm_opensm *osm, uint64_t guid, uint8_t *row, uint16_t max_lid);
int ibw_check_switches(struct osm_opensm *osm, const uint64_t *guids, int32_t n, uint16_t max_lid);
int ibw_set_lfts(struct osm_opensm *osm, const uint64_t *guids, int32_t n, const uint8_t *rows, int64_t stride, uint16_t max_lid,
		 int count);
int ibw_set_hop_rows(struct osm_opensm *osm, uint64_t guid, int32_t n, const uint16_t *lids, const uint8_t *rows, int32_t width);

#endif
