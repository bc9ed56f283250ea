"""The pages of a built site: which are indexed, their addresses, editions and sources"""
