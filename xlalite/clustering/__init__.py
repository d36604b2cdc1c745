"""Which operations of a graph are compiled together, and why the others are not.

Level 4 of the house: knows graphs, and neither passes, backends nor sessions.
"""

from xlalite.clustering.cluster import cluster_operations as cluster_operations
from xlalite.clustering.options import ClusteringOptions as ClusteringOptions
from xlalite.clustering.result import Cluster as Cluster, Clustering as Clustering
