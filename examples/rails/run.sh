# Two cables of node0003 are exchanged, and an adapter of node0006 has no driver.
sed 's/"node0003 mlx5_1"/"node0003 other"/
	s/"node0003 mlx5_2"/"node0003 mlx5_1"/
	s/"node0003 other"/"node0003 mlx5_2"/
	s/"node0006 mlx5_3"/"MT4129 ConnectX7   Mellanox Technologies"/' fabric.ibnetdiscover >now.ibnetdiscover
ibweave rails -t now.ibnetdiscover -e updn --host node0003
